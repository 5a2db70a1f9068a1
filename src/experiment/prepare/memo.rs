//! What has been made, and is not made again.

/// What has been made, by what it was made from. There are few of each.
pub(super) struct Memo<K, V>(pub Vec<(K, V)>);

impl<K: PartialEq, V: Clone> Memo<K, V> {
    /// What was made, or is made now.
    pub(super) fn get<E>(&mut self, key: K, make: impl FnOnce() -> Result<V, E>) -> Result<V, E> {
        if let Some((_, known)) = self.0.iter().find(|(known, _)| *known == key) {
            return Ok(known.clone());
        }
        let made = make()?;
        self.0.push((key, made.clone()));
        Ok(made)
    }
}
