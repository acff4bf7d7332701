//! The Secrets that the settings name, and what is in them.

use opensdn_nested_workloads::Inputs;

use crate::component::{Escaped, Form, NamedSecret};

const KEYSTONE: &str = "escaped-keystone-password";
const RABBITMQ: &str = "escaped-rabbitmq-password";

/// What names a password that is in another form in the operator's own Secret.
pub(super) const ESCAPED: &[Escaped] = &[
    (KEYSTONE, |inputs, key| {
        if let Some(keystone) = &mut inputs.keystone {
            keystone.escaped_password = Some(key);
        }
    }),
    (RABBITMQ, |inputs, key| inputs.escaped_rabbitmq_password = Some(key)),
];

/// Those of these inputs; Keystone's only where the spec does not have the password.
pub(super) fn named(inputs: &Inputs, has_keystones: bool) -> Vec<NamedSecret> {
    let underlay = &inputs.nested.underlay;
    let mut all = Vec::new();
    let mut add = |field, secret: &str, key, form| {
        all.push(NamedSecret { field, secret: secret.to_owned(), key, form });
    };
    if let Some(keystone) = inputs.keystone.as_ref().filter(|_| has_keystones) {
        let field = "spec.commonConfiguration.authParameters.keystoneSecretName";
        add(field, &keystone.password.secret, "password", Form::Password(KEYSTONE));
    }
    if let Some(secret) = underlay.rabbitmq_secret_name.as_deref() {
        let field = "spec.serviceConfiguration.nested.underlay.rabbitmqSecretName";
        add(field, secret, "user", Form::Plain);
        add(field, secret, "password", Form::Password(RABBITMQ));
        add(field, secret, "vhost", Form::Plain);
    }
    if let Some(secret) = underlay.ca_secret_name.as_deref() {
        let field = "spec.serviceConfiguration.nested.underlay.caSecretName";
        add(field, secret, "ca-bundle.crt", Form::File);
    }
    all
}
