//! Arrays and sparse matrices among the objects of a pickle.

use super::element::{Element, whole};
use super::npy::Array;
use super::pickle::{Id, Name, Pickle, Value};
use crate::graph::GraphError;

/// A `scipy.sparse` matrix in compressed rows, checked: offsets ascend to the number of stored
/// values, columns are below the width.
pub(super) struct Matrix {
    /// Number of columns.
    pub width: usize,
    /// `[rows + 1]`.
    pub offsets: Vec<usize>,
    /// `[stored]`.
    pub columns: Vec<u32>,
    /// `[stored]`.
    pub values: Vec<f32>,
}

impl Matrix {
    /// The checked form of the three arrays of a compressed matrix.
    pub(super) fn new(
        shape: [usize; 2],
        offsets: &[f64],
        columns: &[f64],
        values: &[f64],
    ) -> Result<Self, String> {
        let [rows, width] = shape;
        let offsets = offsets
            .iter()
            .map(|&at| index(at))
            .collect::<Result<Vec<_>, _>>()?;
        // The first comparison comes first: after it there is an offset to look at.
        let sound = rows.checked_add(1) == Some(offsets.len())
            && offsets[0] == 0
            && offsets.is_sorted()
            && offsets.last() == Some(&columns.len())
            && columns.len() == values.len();
        if !sound {
            return Err(format!(
                "a sparse matrix of {rows} rows has {} row offsets, {} columns and {} values \
                that do not fit together",
                offsets.len(),
                columns.len(),
                values.len()
            ));
        }
        let column = |&value: &f64| {
            let column = index(value)?;
            u32::try_from(column)
                .ok()
                .filter(|_| column < width)
                .ok_or_else(|| format!("column {column} is not below the width {width}"))
        };
        let columns = columns.iter().map(column).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            width,
            offsets,
            columns,
            values: values.iter().map(|&v| v as f32).collect(),
        })
    }

    /// Number of rows.
    pub(super) const fn rows(&self) -> usize {
        self.offsets.len() - 1
    }

    /// The stored (column, value) pairs of a row.
    pub(super) fn row(&self, row: usize) -> Vec<(u32, f32)> {
        let range = self.offsets[row]..self.offsets[row + 1];
        self.columns[range.clone()]
            .iter()
            .copied()
            .zip(self.values[range].iter().copied())
            .collect()
    }
}

/// A value that must be a whole number from 0 to 2⁵³.
pub(super) fn index(value: f64) -> Result<usize, String> {
    if value.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&value) {
        Ok(value as usize)
    } else {
        Err(format!(
            "expected a whole number that is not negative, found {value}"
        ))
    }
}

/// The array that the pickle is of, or one inside it. What the files hold fits without loss except
/// for integers beyond 2⁵³, which are refused where an index is expected.
pub(super) fn array(pickle: &Pickle, id: Id) -> Result<Array<f64>, GraphError> {
    let missing = || pickle.error("expected a NumPy array of numbers; is this the published file?");
    let state = pickle.state(id, Name::NdArray).ok_or_else(missing)?;
    let Some(&[_, shape, dtype, fortran, raw]) = pickle.sequence(state) else {
        return Err(missing());
    };
    let shape = dimensions(pickle, shape).ok_or_else(missing)?;
    let kind = kind(pickle, dtype).ok_or_else(missing)?;
    let raw = pickle.string(raw).ok_or_else(missing)?;
    let size = match &kind {
        b"i4" | b"f4" => 4,
        b"i8" | b"f8" => 8,
        // No type that is read.
        _ => 0,
    };
    let Some(decode) = f64::decoder(kind[0], size) else {
        let what = format!("arrays of type `{}` are not read", kind.escape_ascii());
        return Err(pickle.error(what));
    };
    let declared = shape
        .iter()
        .try_fold(size, |product, &extent| product.checked_mul(extent));
    // One dimension has the same order either way.
    let column_major = matches!(pickle.get(fortran), Value::Bool(true)) && shape.len() > 1;
    if declared != Some(raw.len()) || column_major {
        let what = format!(
            "an array of shape {shape:?} holds {} bytes of type `{}`; expected rows one after \
            another",
            raw.len(),
            kind.escape_ascii()
        );
        return Err(pickle.error(what));
    }
    Ok(Array {
        shape,
        values: raw
            .chunks_exact(size)
            .map(|raw| decode(whole(raw)))
            .collect(),
    })
}

/// The sparse matrix that the pickle is of.
pub(super) fn matrix(pickle: &Pickle) -> Result<Matrix, GraphError> {
    let missing = || pickle.error("expected a SciPy CSR matrix; is this the published file?");
    let state = pickle
        .state(pickle.root(), Name::CsrMatrix)
        .ok_or_else(missing)?;
    let Value::Dict(entries) = pickle.get(state) else {
        return Err(missing());
    };
    let entry = |name: &[u8]| {
        let named = |&&(key, _): &&(Id, Id)| pickle.string(key) == Some(name);
        entries
            .iter()
            .find(named)
            .map(|&(_, value)| value)
            .ok_or_else(missing)
    };
    let shape = dimensions(pickle, entry(b"_shape")?).ok_or_else(missing)?;
    let shape = <[usize; 2]>::try_from(shape).map_err(|_| missing())?;
    let part = |name| array(pickle, entry(name)?).map(|array| array.values);
    let (offsets, columns, values) = (part(b"indptr")?, part(b"indices")?, part(b"data")?);
    Matrix::new(shape, &offsets, &columns, &values).map_err(|what| pickle.error(what))
}

fn dimensions(pickle: &Pickle, id: Id) -> Option<Vec<usize>> {
    let extent = |&item: &Id| {
        pickle
            .int(item)
            .and_then(|value| usize::try_from(value).ok())
    };
    pickle.sequence(id)?.iter().map(extent).collect()
}

/// The two letters of a type, if its bytes are little-endian.
fn kind(pickle: &Pickle, id: Id) -> Option<[u8; 2]> {
    let Value::Object {
        class: Name::Dtype,
        arguments,
        state: Some(state),
    } = pickle.get(id)
    else {
        return None;
    };
    let letters = pickle.string(*pickle.sequence(*arguments)?.first()?)?;
    let order = pickle.string(*pickle.sequence(*state)?.get(1)?)?;
    (order == b"<").then(|| letters.try_into().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// An `i4` array of the given shape and bytes, as Python 2 writes it.
    fn pickled(shape: u8, raw: &[u8], order: u8, kind: [u8; 2]) -> Vec<u8> {
        let mut bytes = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\n".to_vec();
        bytes.extend(b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K");
        bytes.extend([shape]);
        bytes.extend(b"\x85cnumpy\ndtype\nU\x02");
        bytes.extend(kind);
        bytes.extend(b"K\x00K\x01\x87R(K\x03U\x01");
        bytes.extend([order]);
        bytes.extend(b"NNNtb\x89T");
        bytes.extend(u32::try_from(raw.len()).unwrap().to_le_bytes());
        bytes.extend(raw);
        bytes.extend(b"tb.");
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Array<f64>, GraphError> {
        let pickle = Pickle::read(Path::new("p"), bytes)?;
        array(&pickle, pickle.root())
    }

    #[test]
    fn an_array_is_read_with_its_shape() {
        let array = read(&pickled(2, b"\x01\0\0\0\xff\xff\xff\xff", b'<', *b"i4")).unwrap();
        assert_eq!((array.shape, array.values), (vec![2], vec![1.0, -1.0]));
    }

    #[test]
    fn an_array_with_other_bytes_than_it_declares_is_refused() {
        for (bytes, message) in [
            (
                pickled(200, b"\x01\0\0\0", b'<', *b"i4"),
                "of shape [200] holds 4 bytes",
            ),
            (
                pickled(1, b"\x01\0\0\0", b'<', *b"O8"),
                "type `O8` are not read",
            ),
            (
                pickled(1, b"\x01\0\0\0", b'>', *b"i4"),
                "expected a NumPy array",
            ),
            (b"N.".to_vec(), "expected a NumPy array"),
        ] {
            let error = read(&bytes).err().unwrap().to_string();
            assert!(
                error.starts_with("p: ") && error.contains(message),
                "{error}"
            );
        }
    }

    #[test]
    fn a_matrix_whose_parts_disagree_is_refused() {
        let new = |offsets: &[f64], columns: &[f64], values: &[f64]| {
            Matrix::new([2, 3], offsets, columns, values).map(|matrix| matrix.row(1))
        };
        assert_eq!(
            new(&[0.0, 1.0, 2.0], &[2.0, 0.0], &[5.0, 6.0]),
            Ok(vec![(0, 6.0)])
        );
        assert!(
            new(&[0.0, 2.0], &[2.0, 0.0], &[5.0, 6.0])
                .unwrap_err()
                .contains("fit together")
        );
        assert!(
            new(&[0.0, 2.0, 1.0], &[2.0], &[5.0])
                .unwrap_err()
                .contains("fit together")
        );
        assert!(
            new(&[0.0, 1.0, 1.0], &[3.0], &[5.0])
                .unwrap_err()
                .contains("below the width 3")
        );
        assert!(
            new(&[0.0, -1.0, 1.0], &[0.0], &[5.0])
                .unwrap_err()
                .contains("not negative")
        );
    }
}
