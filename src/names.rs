//! Enums whose variants have names, and tables of names.

/// An enum whose variants have names in files and tables, each written once, beside its variant:
/// `NodeHt = "node_ht",`. Gives it `name`, and `ALL` in the order of the variants, for all who see
/// the enum.
macro_rules! named {
    (
        $(#[$about:meta])*
        $sees:vis enum $named:ident {
            $( $(#[$variant_about:meta])* $variant:ident = $name:literal, )*
        }
    ) => {
        $(#[$about])*
        $sees enum $named {
            $( $(#[$variant_about])* $variant, )*
        }

        impl $named {
            /// All of them, in order.
            #[allow(dead_code)] // of some, nobody asks for all
            $sees const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Its name in files and tables.
            $sees const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )*
                }
            }
        }
    };
}

/// A table of names with what they stand for, a row a line: `"ring": "the first of these",`.
macro_rules! rows {
    ($($name:literal: $what:literal,)*) => { [$(($name, $what)),*] };
}

pub(crate) use {named, rows};
