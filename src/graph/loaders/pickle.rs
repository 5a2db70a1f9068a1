//! A reader of Python pickles (protocol 2) that runs nothing.
//!
//! A pickle is a program for a small stack machine. The one of Python may call any function; this
//! one knows the two dozen instructions that arrays, sparse matrices and dictionaries need, and a
//! list of names it may meet. A name stands for a *kind of value*, never for code. Anything else is
//! an error with its byte offset. Each instruction adds at most one value and raw data stays in the
//! file's own bytes, so memory is bounded by a multiple of the file's length, whatever sizes it
//! declares. Values live in one list and refer to one another by index: a pickle that contains
//! itself can be read and dropped.

use std::path::Path;

pub(super) use super::machine::{Id, Name, Value};

use super::machine::Machine;
use crate::graph::GraphError;

/// A pickle that was read.
pub(super) struct Pickle<'a> {
    path: &'a Path,
    values: Vec<Value<'a>>,
    root: Id,
}

impl<'a> Pickle<'a> {
    /// Reads the whole of `bytes`; `path` is for messages.
    pub(super) fn read(path: &'a Path, bytes: &'a [u8]) -> Result<Self, GraphError> {
        let mut machine = Machine::new(bytes);
        // Each step takes a byte at least, so this ends.
        loop {
            let offset = machine.offset();
            match machine.step() {
                Ok(None) => {}
                Ok(Some(root)) => {
                    return Ok(Self {
                        path,
                        values: machine.into_values(),
                        root,
                    });
                }
                Err(what) => {
                    let told = "fetch the published file again";
                    let what = format!("at byte {offset}: {what}; {told}");
                    return Err(GraphError::file(path, what));
                }
            }
        }
    }

    /// The value that the pickle is of.
    pub(super) const fn root(&self) -> Id {
        self.root
    }

    /// A value by index.
    pub(super) fn get(&self, id: Id) -> &Value<'a> {
        &self.values[id]
    }

    /// A value as a whole number.
    pub(super) fn int(&self, id: Id) -> Option<i64> {
        match self.get(id) {
            Value::Int(value) => Some(*value),
            _ => None,
        }
    }

    /// A value as the items of a tuple or list.
    pub(super) fn sequence(&self, id: Id) -> Option<&[Id]> {
        match self.get(id) {
            Value::Sequence(items) => Some(items),
            _ => None,
        }
    }

    /// A byte string or text as bytes.
    pub(super) fn string(&self, id: Id) -> Option<&[u8]> {
        match self.get(id) {
            Value::Bytes(bytes) => Some(bytes),
            Value::Text(text) => Some(text.as_bytes()),
            _ => None,
        }
    }

    /// The state of an instance of `class`.
    pub(super) fn state(&self, id: Id, class: Name) -> Option<Id> {
        match self.get(id) {
            Value::Object {
                class: found,
                state,
                ..
            } if *found == class => *state,
            _ => None,
        }
    }

    /// An error about the content as a whole.
    pub(super) fn error(&self, what: impl Into<String>) -> GraphError {
        GraphError::file(self.path, what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(bytes: &[u8]) -> Result<String, GraphError> {
        let pickle = Pickle::read(Path::new("p"), bytes)?;
        Ok(format!("{:?}", pickle.get(pickle.root())))
    }

    fn message(bytes: &[u8]) -> String {
        read(bytes).unwrap_err().to_string()
    }

    #[test]
    fn a_call_of_anything_unknown_is_refused_by_name() {
        let evil = b"\x80\x02cposix\nsystem\nq\x01U\x04true\x85R.";
        assert_eq!(
            message(evil),
            "p: at byte 2: refers to `posix.system`, which data does not need and which is not \
            looked at further; \
             fetch the published file again"
        );
    }

    #[test]
    fn a_huge_declared_size_is_refused_without_allocating() {
        let text = message(b"\x80\x02T\xff\xff\xff\x7fabc.");
        assert!(
            text.starts_with("p: at byte 2: needs 2147483647 more bytes where 4 are left"),
            "{text}"
        );
    }

    #[test]
    fn instructions_beyond_the_list_and_other_protocols_are_refused() {
        assert!(message(b"\x80\x02I42\n.").contains("at byte 2: instruction 0x49"));
        assert!(message(b"\x80\x04N.").contains("protocol 4"));
        assert!(message(b"\x80\x02").contains("cut short"));
        assert!(
            message(b"\x80\x02K\x01(\x85.").contains("at byte 5: an instruction finds too few")
        );
    }

    #[test]
    fn numbers_of_every_length_are_read_with_their_sign() {
        for (bytes, value) in [
            (&b"K\xff."[..], "Int(255)"),
            (b"M\x00\x01.", "Int(256)"),
            (b"J\xff\xff\xff\xff.", "Int(-1)"),
            (b"\x8a\x02\xfe\xff.", "Int(-2)"),
            (b"\x8a\x00.", "Int(0)"),
        ] {
            assert_eq!(read(bytes).unwrap(), value);
        }
    }

    #[test]
    fn a_list_that_contains_itself_is_read() {
        assert_eq!(read(b"]q\x00h\x00a.").unwrap(), "Sequence([0])");
    }

    /// A dictionary of lists and an array, as the published files have them.
    fn sample() -> Vec<u8> {
        let mut bytes =
            b"\x80\x02ccollections\ndefaultdict\nq\x01c__builtin__\nlist\nq\x02\x85Rq\x03("
                .to_vec();
        bytes.extend_from_slice(b"K\x00]q\x04(M\x01\x02K\x05eK\x01]q\x05K\x00auU\x03abch\x03\x86");
        bytes.extend_from_slice(
            b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R",
        );
        bytes.extend_from_slice(
            b"(K\x01K\x02\x85cnumpy\ndtype\nU\x02i4K\x00K\x01\x87R(K\x03U\x01<NNNtb\x89U\x08",
        );
        bytes.extend_from_slice(b"\x01\0\0\0\x02\0\0\0tb\x86.");
        bytes
    }

    proptest! {
        #[test]
        fn a_truncated_or_mutated_pickle_is_an_error_or_a_value_but_never_a_panic(
            cut in 0_usize..200,
            changes in prop::collection::vec((0_usize..200, any::<u8>()), 0..6)
        ) {
            let mut bytes = sample();
            prop_assert!(read(&bytes).is_ok());
            for (at, byte) in changes {
                let length = bytes.len();
                bytes[at % length] = byte;
            }
            let _ = read(&bytes);
            bytes.truncate(cut);
            let _ = read(&bytes);
        }

        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = read(&bytes);
        }
    }
}
