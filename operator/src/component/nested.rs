//! What a component is where its cluster is nested in the network of another.

use opensdn_nested_workloads::{Inputs, SecretKey};

/// What runs of a component in a nested cluster. A password may be in it, so that it has no Debug output.
pub struct Nested {
    /// What the workloads are made of, but for what they are called and what is in Secrets.
    pub inputs: Inputs,
    /// What is wrong, by the field of the inputs that it would have become.
    pub wrong: Vec<(&'static str, String)>,
    /// The Secrets that the settings name, with the keys that they must have.
    pub secrets: Vec<NamedSecret>,
    /// The password for Keystone, where the spec has it and no Secret.
    pub keystone_password: Option<String>,
    /// The passwords that are in another form in the operator's own Secret, where they are there.
    pub escaped: &'static [Escaped],
    /// What kube-manager's container runs in the place of its image's entrypoint.
    pub command: Option<Vec<String>>,
    /// By which field of the object a field of the inputs is set.
    pub field: fn(&str) -> String,
}

/// A key of the operator's own Secret, and what names it in the inputs.
pub type Escaped = (&'static str, fn(&mut Inputs, SecretKey));

/// A key that must be in a Secret.
#[derive(Clone, Debug)]
pub struct NamedSecret {
    /// The field that names the Secret.
    pub field: &'static str,
    /// The Secret.
    pub secret: String,
    /// The key.
    pub key: &'static str,
    /// How its value gets to kube-manager.
    pub form: Form,
}

/// How a value gets to kube-manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As a file.
    File,
    /// In its configuration file, as it is.
    Plain,
    /// In its configuration file, and where that cannot have it as it is, under this key of the operator's own Secret.
    Password(&'static str),
}
