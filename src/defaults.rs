//! What settings are that are left out, as serde asks for it.

/// So many.
pub(crate) const fn count<const N: usize>() -> usize {
    N
}

/// Whether a setting may be left out where it is written down.
pub(crate) fn is_default<T: Default + PartialEq>(setting: &T) -> bool {
    *setting == T::default()
}
