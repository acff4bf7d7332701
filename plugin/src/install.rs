//! OpenSDN in a cluster: what `render`, `install`, `diff`, `uninstall` and `prune` are made of.
//!
//! ```text
//! values.rs     files, --set and --profile to one set of values
//! typed.rs      what fits the schema of the values, and what was probably meant
//! object.rs     what an object is called, and which are ours
//! path.rs       fields as the API server names them
//! inventory.rs  the ConfigMap that says what is installed, and with which values
//! plan.rs       what an apply would do to each object, from what the API server says
//! in_the_way.rs what refuses an installation, from the plan
//! waits.rs      what an installation waits for, from statuses
//! removal.rs    what is removed, and in which order
//! network_loss.rs  how many pods lose their network with it
//! requests.rs   the requests; the only file here that reads or writes a cluster
//! survey.rs     what is in the cluster, and the plan of every object; nothing is written
//! tf_operator.rs  which Deployments are a tf-operator, and whether one runs
//! take_over.rs  what tf-operator runs, and its end
//! waiting.rs    until states are reached, with a deadline
//! target.rs     which cluster that is, for people
//! tenants.rs    who has rights in namespaces that were there before
//! workload.rs   how far a Deployment or a DaemonSet is, with its pods
//! applying.rs   the steps of an installation, one after the other
//! removing.rs   the steps of a removal
//! ```
//!
//! Deliberately not here: the objects themselves (`opensdn-deploy`), and what the commands print.

pub(crate) mod applying;
pub(crate) mod deleting;
pub(crate) mod in_the_way;
pub(crate) mod inventory;
mod left_rights;
pub(crate) mod network_loss;
pub(crate) mod object;
pub(crate) mod path;
pub(crate) mod plan;
mod release_2011;
pub(crate) mod removal;
pub(crate) mod removal_mark;
pub(crate) mod removing;
pub(crate) mod requests;
pub(crate) mod survey;
pub(crate) mod take_over;
pub(crate) mod target;
pub(crate) mod tenants;
mod typed;
pub(crate) mod values;
pub(crate) mod waiting;
pub(crate) mod waits;
pub(crate) mod workload;
