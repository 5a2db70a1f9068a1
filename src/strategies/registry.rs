//! The strategies that experiment files can name.

use super::{OptionError, Registration, Strategy};

/// All strategies a program knows. A program of yours adds its own to the built-in ones and hands
/// the registry to [`crate::cli::run_with`].
#[derive(Clone)]
pub struct Registry(Vec<Registration>);

impl Registry {
    /// The strategies of this crate.
    pub fn builtin() -> Self {
        Self(vec![
            super::full::REGISTRATION,
            super::isolated::REGISTRATION,
            super::fixed::REGISTRATION,
            super::varco::REGISTRATION,
            super::bns::REGISTRATION,
            super::pipe::REGISTRATION,
            super::adaqp::REGISTRATION,
            super::sylvie::REGISTRATION,
            super::ecgraph::REGISTRATION,
            super::cagnet::REGISTRATION,
            super::sancus::REGISTRATION,
            super::distgnn::REGISTRATION,
            super::grappa::REGISTRATION,
            super::retexo::REGISTRATION,
            super::distdgl::REGISTRATION,
            super::llcg::REGISTRATION,
            super::fedgcn::FEDAVG,
            super::fedgcn::FEDGCN,
            super::cluster::REGISTRATION,
            super::train::REGISTRATION,
        ])
    }

    /// With one more strategy; a name that exists is replaced.
    pub fn with(mut self, registration: Registration) -> Self {
        self.0
            .retain(|other| other.info.name != registration.info.name);
        self.0.push(registration);
        self
    }

    /// All strategies, in the order of registration.
    pub fn all(&self) -> &[Registration] {
        &self.0
    }

    /// Names of all strategies.
    pub fn names(&self) -> Vec<&'static str> {
        self.0
            .iter()
            .map(|registration| registration.info.name)
            .collect()
    }

    /// The strategy `kind` with `options`.
    ///
    /// # Errors
    /// If there is no such strategy, or an option is unknown, of the wrong type, or out of range.
    pub fn read(
        &self,
        kind: &str,
        options: &toml::Table,
    ) -> Result<Box<dyn Strategy>, OptionError> {
        let registration = self
            .0
            .iter()
            .find(|registration| registration.info.name == kind)
            .ok_or_else(|| {
                let names = self.names().join(", ");
                OptionError::key("kind", format!("must be one of {names}, not {kind}"))
            })?;
        (registration.read)(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::{Table, Value};

    #[test]
    fn messages_about_options_are_one_line() {
        let wrong = [
            Value::String("64Mb".to_owned()),
            Value::Float(-1.5),
            Value::Integer(-1),
            Value::Boolean(true),
            Value::Array(vec![Value::Boolean(true)]),
            Value::Table(Table::from_iter([("?".to_owned(), Value::Integer(1))])),
        ];
        let registry = Registry::builtin();
        let mut refused = 0;
        for registration in registry.all() {
            let name = registration.info.name;
            for option in registration.info.options {
                for value in &wrong {
                    let table = Table::from_iter([(option.name.to_owned(), value.clone())]);
                    let Err(error) = registry.read(name, &table) else {
                        continue;
                    };
                    let said = error.message;
                    assert!(!said.contains('\n'), "{name}, {table}: {said}");
                    refused += 1;
                }
            }
        }
        assert!(refused > 100, "only {refused} were refused");
    }
}
