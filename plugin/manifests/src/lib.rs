//! Manifests as people write them: YAML and JSON with places, checked against schemas and CEL rules.
