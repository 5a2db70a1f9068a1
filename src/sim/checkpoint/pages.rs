//! The state of a program as bytes, one thing after another.

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::sim::SimError;

/// What a program saves of itself, in an order of its own, in which it is [loaded](Loading).
#[derive(Default)]
pub struct Saving {
    bytes: Vec<u8>,
    failed: Option<String>,
}

impl Saving {
    /// Adds anything, numbers to the bit.
    pub fn put<T: Serialize + ?Sized>(&mut self, value: &T) {
        let mut packed = Vec::new();
        // CBOR and not JSON, in which what is not a number has no place. Nothing that is saved
        // refuses to be; if it did, no checkpoint is written.
        if let Err(error) = ciborium::into_writer(value, &mut packed) {
            self.failed.get_or_insert(error.to_string());
        }
        self.add(&packed);
    }

    /// Adds floats, 4 bytes each.
    pub fn floats(&mut self, values: &[f32]) {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        self.add(&bytes);
    }

    /// Adds lists of floats.
    pub fn lists<'a>(&mut self, lists: impl IntoIterator<Item = &'a [f32]>) {
        let lists: Vec<&[f32]> = lists.into_iter().collect();
        self.put(&lists.len());
        for list in lists {
            self.floats(list);
        }
    }

    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend((bytes.len() as u64).to_le_bytes());
        self.bytes.extend(bytes);
    }

    /// All of it.
    pub(in crate::sim) fn into_bytes(self) -> Result<Vec<u8>, SimError> {
        match self.failed {
            None => Ok(self.bytes),
            Some(error) => Err(SimError::Strategy(format!("its state: {error}"))),
        }
    }
}

/// What a program saved of itself, in the same order.
pub struct Loading<'a>(&'a [u8]);

impl<'a> Loading<'a> {
    pub(in crate::sim) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The next thing.
    ///
    /// # Errors
    /// If something else was saved there.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<T, SimError> {
        ciborium::from_reader(self.next()?).map_err(|error| other(&error.to_string()))
    }

    /// The next floats.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn floats(&mut self) -> Result<Vec<f32>, SimError> {
        let (words, rest) = self.next()?.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(other("no whole floats"));
        }
        Ok(words.iter().map(|word| f32::from_le_bytes(*word)).collect())
    }

    /// The next lists of floats.
    ///
    /// # Errors
    /// As [`Self::take`].
    pub fn lists(&mut self) -> Result<Vec<Vec<f32>>, SimError> {
        let lists: usize = self.take()?;
        (0..lists).map(|_| self.floats()).collect()
    }

    /// That all was loaded that was saved.
    pub(in crate::sim) fn end(&self) -> Result<(), SimError> {
        if self.0.is_empty() {
            return Ok(());
        }
        Err(other("more was saved than is loaded"))
    }

    fn next(&mut self) -> Result<&'a [u8], SimError> {
        let split = || {
            let (length, rest) = self.0.split_first_chunk::<8>()?;
            rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
        };
        let (next, rest) = split().ok_or_else(|| other("it ends too early"))?;
        self.0 = rest;
        Ok(next)
    }
}

/// Of a program that loads what it did not save, which no damage of a file is: that was found.
fn other(what: &str) -> SimError {
    SimError::Strategy(format!(
        "a checkpoint of this training does not hold what it loads: {what}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_saved_is_loaded_in_its_order_to_the_bit() {
        let mut saving = Saving::default();
        saving.put(&(3_usize, f64::NAN.to_bits(), "text".to_owned()));
        saving.floats(&[0.1, f32::MIN_POSITIVE, -0.0]);
        saving.lists([&[1.0][..], &[]]);
        let bytes = saving.into_bytes().unwrap();
        let mut loading = Loading::new(&bytes);
        let found: (usize, u64, String) = loading.take().unwrap();
        assert_eq!(found, (3, f64::NAN.to_bits(), "text".to_owned()));
        let floats = loading.floats().unwrap();
        assert_eq!(floats, [0.1, f32::MIN_POSITIVE, -0.0]);
        assert!(floats[2].is_sign_negative());
        assert!(loading.end().is_err(), "there is more");
        assert_eq!(loading.lists().unwrap(), [vec![1.0], Vec::new()]);
        loading.end().unwrap();
        assert!(loading.floats().is_err(), "there is no more");
    }
}
