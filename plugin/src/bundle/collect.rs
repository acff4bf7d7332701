//! Asks for what the plan has, and takes the secrets out of it before it is kept anywhere.

use serde_json::Value;
use tokio::task::JoinSet;

use super::plan::Task;
use super::redact;
use crate::logs::files::MOST_BYTES;
use crate::snapshot::Read;
use crate::snapshot::ask::Asker;

/// Questions at once.
const AT_ONCE: usize = 20;

/// What came of a task: the file's content, nothing where there is nothing of the kind, or why not.
pub(crate) type Collected = (Task, Result<Option<Vec<u8>>, String>);

/// Asks for lists: objects without their secrets.
pub(crate) async fn lists(asker: &Asker, tasks: Vec<Task>) -> Vec<Collected> {
    ask(asker, tasks, |asker, path| async move {
        match asker.get(&path).await {
            Read::Known(mut list) => {
                clean(&mut list);
                serde_json::to_vec_pretty(&list).map(Some).map_err(|error| error.to_string())
            }
            Read::Absent => Ok(None),
            Read::Unknown(why) => Err(why),
        }
    })
    .await
}

/// The items of a list do not say what they are; the list does: `SecretList`.
fn clean(list: &mut Value) {
    let kind = list.pointer("/kind").and_then(Value::as_str).unwrap_or_default();
    let kind = kind.strip_suffix("List").unwrap_or(kind).to_owned();
    let Some(Value::Array(items)) = list.get_mut("items") else { return redact::object(list) };
    for item in items {
        if let Some(item) = item.as_object_mut() {
            item.entry("kind").or_insert_with(|| kind.clone().into());
        }
        redact::object(item);
    }
}

/// Asks for logs: texts without what looks like a secret.
pub(crate) async fn logs(asker: &Asker, tasks: Vec<Task>) -> Vec<Collected> {
    ask(asker, tasks, |asker, path| async move {
        asker.text(&path).await.map(|text| Some(redact::text(&text).into_bytes()))
    })
    .await
}

/// Asks for files of nodes: of each the end, without what looks like a secret.
pub(crate) async fn files(asker: &Asker, tasks: Vec<Task>) -> Vec<Collected> {
    ask(asker, tasks, |asker, path| async move {
        let end = asker.end(&path, MOST_BYTES).await?;
        Ok(Some(redact::text(&String::from_utf8_lossy(&end.bytes)).into_bytes()))
    })
    .await
}

async fn ask<F>(asker: &Asker, tasks: Vec<Task>, one: fn(Asker, String) -> F) -> Vec<Collected>
where
    F: Future<Output = Result<Option<Vec<u8>>, String>> + Send + 'static,
{
    let mut all = Vec::with_capacity(tasks.len());
    for some in tasks.chunks(AT_ONCE) {
        let mut running = JoinSet::new();
        for (number, task) in some.iter().cloned().enumerate() {
            let answer = one(asker.clone(), task.path.clone());
            running.spawn(async move { (number, (task, answer.await)) });
        }
        let mut answers = running.join_all().await;
        // In the order of the plan, whatever came first.
        answers.sort_by_key(|(number, _)| *number);
        all.extend(answers.into_iter().map(|(_, answer)| answer));
    }
    all
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::clean;

    #[test]
    fn the_items_of_a_list_of_secrets_are_secrets() {
        let mut list = json!({"kind": "SecretList", "items": [{"metadata": {"name": "s"}, "data": {"plain": "aHVudGVyMg=="}}]});
        clean(&mut list);
        assert!(!list.to_string().contains("aHVudGVyMg"), "{list}");
    }
}
