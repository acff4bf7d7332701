//! What `diff` says of manifests.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::short;
use crate::manifest_diff::{Counts, Effect, FieldDifference, ManifestChange};
use crate::output::Answer;

/// What `diff` answers where it is given manifests.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ManifestDiff {
    /// The API server.
    server: String,
    /// How many objects differ.
    counts: Counts,
    /// Those that do, with the fields.
    objects: Vec<ManifestChange>,
}

impl Answer for ManifestDiff {
    const KIND: &'static str = "ManifestDiff";
}

impl ManifestDiff {
    pub(super) fn of(server: String, mut all: Vec<ManifestChange>) -> Self {
        let counts = Counts::of(&all);
        all.retain(|one| one.effect != Effect::Same);
        Self { server, counts, objects: all }
    }

    /// How many objects differ.
    pub(super) fn differ(&self) -> usize {
        self.counts.differ()
    }

    /// Those that differ, as kubectl names them.
    pub(super) fn names(&self) -> Vec<String> {
        self.objects.iter().map(|one| one.key.kubectl_name()).collect()
    }

    pub(super) fn write(&self, summary: bool, out: &mut dyn Write) -> io::Result<()> {
        if !summary {
            self.objects.iter().try_for_each(|one| write_object(one, out))?;
        }
        let Counts { conflict, refused, same, .. } = self.counts;
        let differ = match self.counts.differ() {
            1 => "1 object differs".to_owned(),
            number => format!("{number} objects differ"),
        };
        let notes = [(conflict, "with conflicts"), (refused, "refused")];
        let notes: Vec<String> = notes
            .into_iter()
            .filter(|(number, _)| *number > 0)
            .map(|(number, what)| format!("{number} {what}"))
            .collect();
        let notes =
            if notes.is_empty() { String::new() } else { format!(" ({})", notes.join(", ")) };
        writeln!(out, "{differ}{notes}, {same} equal")
    }
}

fn write_object(one: &ManifestChange, out: &mut dyn Write) -> io::Result<()> {
    let key = &one.key;
    match &one.effect {
        Effect::Same => Ok(()),
        Effect::Create => writeln!(out, "+ {key}"),
        Effect::Refused { reason } => {
            writeln!(out, "! {key}\n    the API server would refuse it: {reason}")
        }
        Effect::Change { fields } => {
            writeln!(out, "~ {key}")?;
            fields.iter().try_for_each(|one| {
                let FieldDifference { field, from, to, owned_by } = one;
                let (from, to) = (short(from.as_ref()), short(to.as_ref()));
                let owner = owned_by.iter().map(|name| format!("  (owned by {name}: conflict)"));
                writeln!(out, "    {field}  {from} -> {to}{}", owner.collect::<String>())
            })
        }
    }
}
