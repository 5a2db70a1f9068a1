//! Enums whose variants have names.

/// An enum whose variants have names in files and tables, each written once, beside its variant:
/// `NodeHt = "node_ht",`. Gives it `name`, and `ALL` in the order of the variants.
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
            #[allow(dead_code)] // of some, nobody asks for all
            pub(crate) const ALL: [Self; [$($name),*].len()] = [$(Self::$variant),*];

            /// Its name in files and tables.
            pub(crate) const fn name(self) -> &'static str {
                match self {
                    $( Self::$variant => $name, )*
                }
            }
        }
    };
}

pub(crate) use named;
