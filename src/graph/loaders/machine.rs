//! The stack machine that reads pickles: two dozen instructions, none of which calls anything.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Index of a value.
pub(super) type Id = usize;

/// The names a pickle may mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// `scipy.sparse` `csr_matrix`.
    CsrMatrix,
    /// `numpy` `ndarray`.
    NdArray,
    /// `numpy` `dtype`.
    Dtype,
    /// The function that makes an empty array to be filled in.
    Reconstruct,
    /// `collections` `defaultdict`.
    DefaultDict,
    /// The built-in `list`.
    List,
    /// The function by which Python 3 writes bytes in protocol 2.
    Encode,
}

/// What a pickle can hold.
#[derive(Clone, Debug)]
pub(super) enum Value<'a> {
    /// `None`.
    None,
    /// A truth value.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A byte string.
    Bytes(Cow<'a, [u8]>),
    /// A text.
    Text(&'a str),
    /// A tuple or a list.
    Sequence(Vec<Id>),
    /// A dictionary, in the order of its entries.
    Dict(Vec<(Id, Id)>),
    /// One of the known names.
    Name(Name),
    /// An instance of a known class, with its arguments and what was set afterwards.
    Object {
        /// The class.
        class: Name,
        /// What it was made of: a tuple.
        arguments: Id,
        /// Its state, if it was given one.
        state: Option<Id>,
    },
}

/// The state of a pickle that is being read.
pub(super) struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value<'a>>,
    stack: Vec<Id>,
    /// Heights of the stack at the marks that are open.
    marks: Vec<usize>,
    // A map, because the file chooses the numbers of slots: a list could be of any length.
    memo: BTreeMap<u32, Id>,
}

impl<'a> Machine<'a> {
    /// Before the first instruction of `bytes`.
    pub(super) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            values: vec![],
            stack: vec![],
            marks: vec![],
            memo: BTreeMap::new(),
        }
    }

    /// Position of the next instruction in the file.
    pub(super) const fn offset(&self) -> usize {
        self.at
    }

    /// All values that were made.
    pub(super) fn into_values(self) -> Vec<Value<'a>> {
        self.values
    }

    /// Runs one instruction; the result of the last is the root.
    pub(super) fn step(&mut self) -> Result<Option<Id>, String> {
        let [code] = self.fixed()?;
        // Codes as Python's `pickletools` lists them.
        match code {
            0x80 => match self.fixed()? {
                [2] => {}
                [other] => return Err(format!("protocol {other}; only protocol 2 is read")),
            },
            b'.' => return self.pop().map(Some),
            b'(' => self.marks.push(self.stack.len()),
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'K' => {
                let [byte] = self.fixed()?;
                self.push(Value::Int(i64::from(byte)));
            }
            b'M' => {
                let value = u16::from_le_bytes(self.fixed()?);
                self.push(Value::Int(i64::from(value)));
            }
            b'J' => {
                let value = i32::from_le_bytes(self.fixed()?);
                self.push(Value::Int(i64::from(value)));
            }
            0x8a => self.long()?,
            b'U' => {
                let [length] = self.fixed()?;
                self.bytes(usize::from(length))?;
            }
            b'T' => {
                let length = u32::from_le_bytes(self.fixed()?);
                self.bytes(length as usize)?;
            }
            b'X' => {
                let length = u32::from_le_bytes(self.fixed()?);
                let text = std::str::from_utf8(self.take(length as usize)?);
                self.push(Value::Text(text.map_err(|_| "a text that is not UTF-8")?));
            }
            b'c' => self.name()?,
            b'q' => {
                let [slot] = self.fixed()?;
                self.put(u32::from(slot))?;
            }
            b'r' => {
                let slot = u32::from_le_bytes(self.fixed()?);
                self.put(slot)?;
            }
            b'h' => {
                let [slot] = self.fixed()?;
                self.recall(u32::from(slot))?;
            }
            b'j' => {
                let slot = u32::from_le_bytes(self.fixed()?);
                self.recall(slot)?;
            }
            b')' | b']' => self.push(Value::Sequence(vec![])),
            b'}' => self.push(Value::Dict(vec![])),
            // Tuples of one, two and three values.
            0x85..=0x87 => {
                let height = self.height(usize::from(code - 0x84))?;
                let items = self.stack.split_off(height);
                self.push(Value::Sequence(items));
            }
            b't' => {
                let items = self.since_mark()?;
                self.push(Value::Sequence(items));
            }
            b'a' => {
                let item = self.pop()?;
                self.append(vec![item])?;
            }
            b'e' => {
                let items = self.since_mark()?;
                self.append(items)?;
            }
            b's' => {
                let height = self.height(2)?;
                let items = self.stack.split_off(height);
                self.insert(&items)?;
            }
            b'u' => {
                let items = self.since_mark()?;
                self.insert(&items)?;
            }
            // Of a class or of a function: both make a value of a name and its arguments.
            0x81 | b'R' => self.construct()?,
            b'b' => self.build()?,
            other => {
                return Err(format!(
                    "instruction 0x{other:02x} is not one that data needs"
                ));
            }
        }
        Ok(None)
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], String> {
        // Compared before anything is taken: a length in a file can be anything.
        let left = self.bytes.len() - self.at;
        if length > left {
            return Err(format!(
                "needs {length} more bytes where {left} are left; the file is cut short or corrupt"
            ));
        }
        let taken = &self.bytes[self.at..self.at + length];
        self.at += length;
        Ok(taken)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    fn push(&mut self, value: Value<'a>) {
        self.stack.push(self.values.len());
        self.values.push(value);
    }

    fn bytes(&mut self, length: usize) -> Result<(), String> {
        let bytes = self.take(length)?;
        self.push(Value::Bytes(Cow::Borrowed(bytes)));
        Ok(())
    }

    /// Height of the stack below its top `count` values, none of which may lie below a mark.
    fn height(&self, count: usize) -> Result<usize, String> {
        let floor = self.marks.last().copied().unwrap_or(0);
        let height = self
            .stack
            .len()
            .checked_sub(count)
            .filter(|&height| height >= floor);
        height.ok_or_else(|| "an instruction finds too few values".to_owned())
    }

    fn pop(&mut self) -> Result<Id, String> {
        self.height(1)?;
        self.stack
            .pop()
            .ok_or_else(|| "an instruction finds no value".to_owned())
    }

    fn top(&self) -> Result<Id, String> {
        let height = self.height(1)?;
        Ok(self.stack[height])
    }

    fn since_mark(&mut self) -> Result<Vec<Id>, String> {
        // The stack is that high still: nothing is taken from below an open mark.
        let height = self.marks.pop().ok_or("an instruction finds no mark")?;
        Ok(self.stack.split_off(height))
    }

    fn put(&mut self, slot: u32) -> Result<(), String> {
        let top = self.top()?;
        self.memo.insert(slot, top);
        Ok(())
    }

    fn recall(&mut self, slot: u32) -> Result<(), String> {
        let id = self
            .memo
            .get(&slot)
            .ok_or_else(|| format!("nothing was stored under {slot}"))?;
        self.stack.push(*id);
        Ok(())
    }

    /// A number of up to eight bytes, little-endian, two's complement.
    fn long(&mut self) -> Result<(), String> {
        let [length] = self.fixed()?;
        let bytes = self.take(usize::from(length))?;
        if bytes.len() > 8 {
            return Err("a number of more than 64 bits".to_owned());
        }
        let sign = bytes
            .last()
            .map_or(0, |&last| if last >= 0x80 { 0xff } else { 0 });
        let mut wide = [sign; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        self.push(Value::Int(i64::from_le_bytes(wide)));
        Ok(())
    }

    fn name(&mut self) -> Result<(), String> {
        let module = self.line()?;
        let name = self.line()?;
        let known = match (module, name) {
            // SciPy and NumPy have moved these since, and files of both times are read.
            (b"scipy.sparse.csr" | b"scipy.sparse._csr", b"csr_matrix") => Name::CsrMatrix,
            (b"numpy", b"ndarray") => Name::NdArray,
            (b"numpy", b"dtype") => Name::Dtype,
            (b"numpy.core.multiarray" | b"numpy._core.multiarray", b"_reconstruct") => {
                Name::Reconstruct
            }
            (b"collections", b"defaultdict") => Name::DefaultDict,
            (b"__builtin__" | b"builtins", b"list") => Name::List,
            (b"_codecs", b"encode") => Name::Encode,
            _ => {
                return Err(format!(
                    "refers to `{}.{}`, which data does not need and which is not looked at \
                    further",
                    module.escape_ascii(),
                    name.escape_ascii()
                ));
            }
        };
        self.push(Value::Name(known));
        Ok(())
    }

    fn line(&mut self) -> Result<&'a [u8], String> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|&byte| byte == b'\n');
        let line = self.take(length.ok_or("a name without an end")?)?;
        self.at += 1;
        Ok(line)
    }

    fn append(&mut self, items: Vec<Id>) -> Result<(), String> {
        let list = self.top()?;
        match &mut self.values[list] {
            Value::Sequence(sequence) => sequence.extend(items),
            _ => return Err("appends to what is not a list".to_owned()),
        }
        Ok(())
    }

    fn insert(&mut self, items: &[Id]) -> Result<(), String> {
        let dict = self.top()?;
        if !items.len().is_multiple_of(2) {
            return Err("inserts a key without a value".to_owned());
        }
        match &mut self.values[dict] {
            Value::Dict(entries) => {
                entries.extend(items.chunks_exact(2).map(|pair| (pair[0], pair[1])));
            }
            _ => return Err("inserts into what is not a dictionary".to_owned()),
        }
        Ok(())
    }

    /// A known name with its arguments becomes a value of the kind it stands for.
    fn construct(&mut self) -> Result<(), String> {
        let height = self.height(2)?;
        let (callable, arguments) = (self.stack[height], self.stack[height + 1]);
        self.stack.truncate(height);
        let (Value::Name(name), Value::Sequence(given)) =
            (&self.values[callable], &self.values[arguments])
        else {
            return Err("constructs something from what is not a known name".to_owned());
        };
        let value = match (name, given.first().map(|&first| &self.values[first])) {
            (Name::CsrMatrix | Name::Dtype, _) => Value::Object {
                class: *name,
                arguments,
                state: None,
            },
            (Name::Reconstruct, Some(Value::Name(Name::NdArray))) => Value::Object {
                class: Name::NdArray,
                arguments,
                state: None,
            },
            // What a missing key would be made of plays no part: nobody asks for one.
            (Name::DefaultDict, _) => Value::Dict(vec![]),
            (Name::List, None) => Value::Sequence(vec![]),
            (Name::Encode, Some(Value::Text(text))) => Value::Bytes(latin1(text)?.into()),
            _ => return Err(format!("uses {name:?} in a way that data does not need")),
        };
        self.push(value);
        Ok(())
    }

    fn build(&mut self) -> Result<(), String> {
        let given = self.pop()?;
        let object = self.top()?;
        match &mut self.values[object] {
            Value::Object { state, .. } => *state = Some(given),
            _ => return Err("gives a state to what has none".to_owned()),
        }
        Ok(())
    }
}

/// Text of characters below 256, one byte each.
fn latin1(text: &str) -> Result<Vec<u8>, String> {
    let byte =
        |character| u8::try_from(u32::from(character)).map_err(|_| "bytes beyond 255".to_owned());
    text.chars().map(byte).collect()
}
