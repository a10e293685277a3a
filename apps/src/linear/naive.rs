//! Matrices by the definition, by columns, for tests. Invariant: nothing is shared with what is tested.

/// The product of square matrices.
pub(crate) fn product(a: &[f64], b: &[f64], order: usize) -> Vec<f64> {
    let mut c = vec![0.0; order * order];
    for (row, column) in (0..order).flat_map(|row| (0..order).map(move |column| (row, column))) {
        c[column * order + row] = (0..order).map(|k| a[k * order + row] * b[column * order + k]).sum();
    }
    c
}

/// The lower triangular factor; an error is the first column whose leading block is not definite.
pub(crate) fn factor(a: &[f64], order: usize) -> Result<Vec<f64>, usize> {
    let mut lower = vec![0.0; order * order];
    for column in 0..order {
        for row in column..order {
            let known: f64 = (0..column).map(|k| lower[k * order + row] * lower[k * order + column]).sum();
            let rest = a[column * order + row] - known;
            if row == column && rest <= 0.0 {
                return Err(column);
            }
            lower[column * order + row] =
                if row == column { rest.sqrt() } else { rest / lower[column * order + column] };
        }
    }
    Ok(lower)
}
