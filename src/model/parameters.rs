//! Parameters and gradients as one flat vector of the host, in the order in which the module lists
//! them.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor, TensorData};

fn to_vec<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    // All parameters are made from f32 data on every backend.
    tensor
        .into_data()
        .try_into_vec()
        .expect("parameters are f32")
}

/// All parameters of a module.
pub fn parameters<M: Module>(module: &M) -> Vec<f32> {
    struct Collect(Vec<f32>);
    impl ModuleVisitor for Collect {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            // Without its history: reading a parameter is no operation that gradients go through.
            self.0.extend(to_vec(param.val().inner()));
        }
    }
    let mut collect = Collect(Vec::new());
    module.visit(&mut collect);
    collect.0
}

/// A weight or bias of a module.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedParameter {
    /// The path of fields to it, with dots: `convs.0.weight_self`.
    pub name: String,
    /// Its sizes: `[inputs, outputs]` of a weight.
    pub shape: Vec<usize>,
    /// Its values, row by row.
    pub values: Vec<f32>,
}

/// All parameters of a module, each by its name, in the order of [`parameters`].
pub(crate) fn named_parameters<M: Module>(module: &M) -> Vec<NamedParameter> {
    #[derive(Default)]
    struct Collect {
        path: Vec<String>,
        found: Vec<NamedParameter>,
    }
    /// Whether a step of the path has a name of its own: that of an enumeration's variant says what
    /// the fields below it say, too.
    fn is_field(container: &str) -> bool {
        !container.starts_with("Enum")
    }
    impl ModuleVisitor for Collect {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let tensor = param.val().inner();
            self.found.push(NamedParameter {
                name: self.path.join("."),
                shape: tensor.dims().to_vec(),
                values: to_vec(tensor),
            });
        }
        fn enter_module(&mut self, name: &str, container: &str) {
            if is_field(container) {
                self.path.push(name.to_owned());
            }
        }
        fn exit_module(&mut self, _name: &str, container: &str) {
            if is_field(container) {
                self.path.pop();
            }
        }
    }
    let mut collect = Collect::default();
    module.visit(&mut collect);
    collect.found
}

/// The sizes of each parameter of a module, in the order of [`parameters`].
pub fn parameter_shapes<M: Module>(module: &M) -> Vec<Vec<usize>> {
    struct Shapes(Vec<Vec<usize>>);
    impl ModuleVisitor for Shapes {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            self.0.push(param.val().dims().to_vec());
        }
    }
    let mut shapes = Shapes(Vec::new());
    module.visit(&mut shapes);
    shapes.0
}

/// Number of parameters of a module.
pub fn parameter_count<M: Module>(module: &M) -> usize {
    let shapes = parameter_shapes(module);
    let sizes = shapes.iter().map(|shape| shape.iter().product::<usize>());
    sizes.sum()
}

/// The module with other parameters.
///
/// # Panics
/// If there are fewer values than parameters.
pub fn with_parameters<M: Module>(module: M, values: &[f32]) -> M {
    struct Replace<'a>(&'a [f32]);
    impl ModuleMapper for Replace<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            param.map(|old| {
                let shape = old.shape();
                // Modules list their fields in one order, in visitors and mappers alike: that order
                // is the flat vector's.
                let (mine, rest) = self.0.split_at(shape.num_elements());
                self.0 = rest;
                // A tensor of new data has no gradient unless it is asked for.
                Tensor::from_data(TensorData::new(mine.to_vec(), shape), &old.device())
                    .require_grad()
            })
        }
    }
    module.map(&mut Replace(values))
}

/// Adds the gradients of a module's parameters to `flat`, in their order; parameters without a
/// gradient add nothing.
///
/// # Panics
/// If `flat` is shorter than the parameters.
pub fn add_gradients<M: Module>(module: &M, gradients: &mut Gradients, flat: &mut [f32]) {
    struct Add<'a>(&'a mut Gradients, &'a mut [f32], usize);
    impl ModuleVisitor for Add<'_> {
        fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
            let tensor = param.val();
            let length = tensor.shape().num_elements();
            let mine = &mut self.1[self.2..self.2 + length];
            self.2 += length;
            if let Some(gradient) = tensor.grad_remove(self.0) {
                // Added, not set: a pass goes back layer by layer, each with gradients of its own.
                for (sum, value) in mine.iter_mut().zip(to_vec(gradient)) {
                    *sum += value;
                }
            }
        }
    }
    module.visit(&mut Add(gradients, flat, 0));
}
