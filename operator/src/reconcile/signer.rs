//! Certificates of a signer of Kubernetes (`certificates.k8s.io`), for which a Manager's `certSigner` asks: cert-manager's for example.
//! Each certificate has a CertificateSigningRequest; its key is kept in a Secret that no pod mounts until the signer has answered.
//! The CAs of the signer are the certificates in the Secret in which a user gives a CA. What it has issued is put into place when all
//! pods trust the CA that issued it.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
};
use kube::api::{DynamicObject, ObjectMeta, Patch, PatchParams, PostParams};
use kube::{Api, ResourceExt as _};
use opensdn_pki::{GivenError, SigningRequest, check_trusted, leaf, new_key, request};
use opensdn_runtime::call::{Call, CallError, Verb};
use opensdn_runtime::error_chain;
use serde_json::{Value, json};
use time::OffsetDateTime;

use super::fetch::Fetched;
use super::{Context, Error, apply, authorities};
use crate::build::certificates::{Asked, Data, Issued, LIFETIME, Wanted};
use crate::build::{Valid, digest, owner};
use crate::cache::Cache;
use crate::kind::Kind;
use crate::names;

/// How long until a request that is not answered yet is looked at again.
pub(super) const POLL_INTERVAL: std::time::Duration = std::time::Duration::from_secs(5);

/// Why a request is approved, for who looks at it.
const APPROVED: &str = "ApprovedByOpensdnOperator";

/// Whether it is the name of a signer that is asked. Those of Kubernetes itself issue no certificates that are for servers and
/// clients both.
#[must_use]
pub(crate) fn is_asked(signer: &str) -> bool {
    signer.contains('/') && !signer.starts_with("kubernetes.io/")
}

/// The signer that a Manager has certificates issued by, if it is not the CA of the namespace.
fn of_manager(manager: &DynamicObject) -> Option<&str> {
    let signer = manager.data.pointer("/spec/commonConfiguration/certSigner")?.as_str()?;
    Some(signer).filter(|signer| is_asked(signer))
}

/// Whether a Manager of the namespace asks a signer.
pub(super) fn is_used_in(cache: &Cache, namespace: &str) -> bool {
    let managers = cache.list(Kind::Manager, namespace);
    managers.iter().any(|manager| of_manager(manager).is_some())
}

/// A signer that is asked.
pub(super) struct Signer {
    name: String,
    /// The certificates of its CAs, each in PEM.
    pub(super) authorities: Vec<String>,
    /// Why it is not asked.
    refused: Option<GivenError>,
}

impl Signer {
    /// That of the component's Manager.
    pub(super) fn of(cache: &Cache, fetched: &Fetched, now: OffsetDateTime) -> Option<Self> {
        let name = of_manager(fetched.manager.as_deref()?)?.to_owned();
        let authorities = authorities::of_signers(cache, &fetched.namespace());
        let refused = check_trusted(&authorities, now).err();
        Some(Self { name, authorities, refused })
    }

    /// What the signer has issued of what it is asked for, and of the first that it has not, why not. Asks for what it was not
    /// asked for before. A call that fails is a reason, too: what runs is kept as it is all the same.
    ///
    /// # Errors
    /// The Secret with the keys cannot be written, or a key cannot be made.
    pub(super) async fn answers(
        &self,
        ctx: &Context,
        fetched: &Fetched,
        valid: &Valid,
        wanted: &Wanted<'_>,
        asked: &[Asked],
    ) -> Result<Answers, Error> {
        let mut answers = Answers::default();
        if let Some(error) = &self.refused {
            answers.why = Some(format!(
                "the certificates of the CAs of signer {} in Secret {} cannot be used: {error}; put them there, in PEM, in the key \
                 {}",
                self.name,
                names::GIVEN_CA_SECRET,
                names::GIVEN_CA_CERTIFICATE
            ));
            return Ok(answers);
        }
        let keys = keys(ctx, fetched, valid, wanted, asked).await?;
        for (one, key) in keys {
            let Some(profile) = one.profile(wanted) else { continue };
            let sought = request(&profile, &key).map_err(Error::Certificates)?;
            let name = self.name_of(fetched, &one, &sought, &profile.names);
            let asked = Request { signer: self, name: &name, asked: &one, request: &sought };
            let why = match asked.answer(&ctx.client).await {
                Ok(Answer::Issued(certificate)) => {
                    match self.judge(ctx, fetched, wanted, &one, certificate, key) {
                        Ok(issued) => {
                            answers.issued.insert(one, issued);
                            continue;
                        }
                        Err(why) => format!("CertificateSigningRequest {name}: {why}"),
                    }
                }
                Ok(Answer::Waits(why)) => why,
                Err(error) => error_chain(&error),
            };
            answers.why.get_or_insert(why);
        }
        Ok(answers)
    }

    /// Of what is asked for no two have one.
    fn name_of(
        &self,
        fetched: &Fetched,
        asked: &Asked,
        sought: &SigningRequest,
        names: &[String],
    ) -> String {
        let uid = fetched.object.uid().unwrap_or_default();
        let names = names.join(",");
        let parts = [&self.name, &uid, &names].map(|part| part.as_bytes());
        let digest = digest(parts.into_iter().chain([sought.public_key.as_slice()]));
        let digest = digest.get(..12).unwrap_or(&digest);
        format!(
            "{}-{}-{}-{}-{digest}",
            names::OPERATOR,
            fetched.namespace(),
            fetched.name(),
            asked.side
        )
    }

    /// What was issued, if it is what was asked for, and all pods trust who has issued it.
    fn judge(
        &self,
        ctx: &Context,
        fetched: &Fetched,
        wanted: &Wanted<'_>,
        asked: &Asked,
        certificate: String,
        key: String,
    ) -> Result<Issued, String> {
        let Some(profile) = asked.profile(wanted) else {
            return Err("it is not needed any more".to_owned());
        };
        let by = |ca: &String| leaf::times(&certificate, &key, ca, &profile.names);
        let issuer = self.authorities.iter().find(|ca| by(ca).is_ok());
        let Some(issuer) = issuer else {
            let errors = self.authorities.iter().filter_map(|ca| by(ca).err());
            // Another CA of several is no reason.
            let why = errors.max_by_key(|error| !matches!(error, leaf::LeafError::Issuer));
            return Err(format!(
                "what {} has issued cannot be used: {}; its CA has to be in Secret {}, and the names those that were asked for",
                self.name,
                why.map(|why| error_chain(&why)).unwrap_or_default(),
                names::GIVEN_CA_SECRET
            ));
        };
        let times = by(issuer).map_err(|error| error_chain(&error))?;
        if !leaf::serves_as(&certificate, profile.usage).is_ok_and(|is| is) {
            return Err(format!(
                "what {} has issued is not for servers and clients both, as it was asked: take another signer",
                self.name
            ));
        }
        let now = OffsetDateTime::now_utc();
        if times.until <= now {
            return Err(
                "what was issued is over already: delete the request, to ask again".to_owned()
            );
        }
        match authorities::do_not_trust(&ctx.cache, &fetched.namespace(), issuer, now) {
            None => Ok(Issued { certificate, key, times }),
            Some(who) => {
                Err(format!("it is used when all pods trust the CA that issued it; {who}"))
            }
        }
    }
}

/// What a signer has said.
#[derive(Debug, Default)]
pub(super) struct Answers {
    /// What it has issued.
    pub(super) issued: BTreeMap<Asked, Issued>,
    /// Why it has not issued the first that it has not.
    pub(super) why: Option<String>,
}

/// The keys of what is asked for, those of before among them, stored before a signer hears of one: else a request that is
/// approved would be lost with the operator. Of what is not asked for any more none is kept.
async fn keys(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    wanted: &Wanted<'_>,
    asked: &[Asked],
) -> Result<Vec<(Asked, String)>, Error> {
    let name = valid.instance.requests();
    let stored = fetched.owned.get(&(Kind::Secret, name.clone()));
    let before: Data = stored
        .and_then(|secret| serde_json::from_value(secret.data.get("data")?.clone()).ok())
        .unwrap_or_default();
    let mut keys = Vec::new();
    for one in asked {
        let there = before.get(&file(one)).and_then(|key| String::from_utf8(key.0.clone()).ok());
        let key = match there {
            Some(key) => key,
            None => {
                tokio::task::block_in_place(|| new_key(wanted.key)).map_err(Error::Certificates)?
            }
        };
        keys.push((one.clone(), key));
    }
    let data: Data = keys
        .iter()
        .map(|(asked, key)| (file(asked), ByteString(key.as_bytes().to_vec())))
        .collect();
    if data != before {
        write(ctx, fetched, valid, data).await?;
    }
    Ok(keys)
}

/// Forgets the keys of what a signer has answered. What it has issued is in place.
///
/// # Errors
/// The call fails.
pub(super) async fn forget(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
) -> Result<(), CallError> {
    let stored = fetched.owned.get(&(Kind::Secret, valid.instance.requests()));
    let is_empty = |secret: &DynamicObject| {
        let data = secret.data.get("data").and_then(Value::as_object);
        data.is_none_or(serde_json::Map::is_empty)
    };
    match stored {
        Some(secret) if !is_empty(secret) => write(ctx, fetched, valid, Data::new()).await,
        _ => Ok(()),
    }
}

async fn write(
    ctx: &Context,
    fetched: &Fetched,
    valid: &Valid,
    data: Data,
) -> Result<(), CallError> {
    let resource = Kind::Secret.resource();
    let mut secret = DynamicObject::new(&valid.instance.requests(), &resource);
    secret.metadata.namespace = fetched.object.namespace();
    secret.metadata.labels = Some(names::managed(valid.instance.labels()));
    secret.metadata.owner_references = Some(vec![owner(&fetched.object)]);
    secret.data = json!({ "data": data });
    apply::write(&ctx.writer, &ctx.cache, Kind::Secret, &secret).await
}

fn file(asked: &Asked) -> String {
    format!("{}-key-{}.pem", asked.side, asked.address)
}

/// One request.
struct Request<'a> {
    signer: &'a Signer,
    name: &'a str,
    asked: &'a Asked,
    request: &'a SigningRequest,
}

enum Answer {
    /// The certificate, in PEM.
    Issued(String),
    /// Why there is none yet.
    Waits(String),
}

impl Request<'_> {
    /// What became of it. It is made if it is not there, and approved where the operator may.
    async fn answer(&self, client: &kube::Client) -> Result<Answer, CallError> {
        let api: Api<CertificateSigningRequest> = Api::all(client.clone());
        let call = |verb| Call::of::<CertificateSigningRequest>(verb).name(self.name);
        let there = match call(Verb::Get).run(api.get_opt(self.name)).await? {
            Some(there) => there,
            None => {
                let made = self.object();
                let created =
                    call(Verb::Create).run(api.create(&PostParams::default(), &made)).await?;
                tracing::info!(
                    name = self.name,
                    signer = self.signer.name,
                    "asked for a certificate"
                );
                created
            }
        };
        if there.spec.signer_name != self.signer.name {
            return Ok(Answer::Waits(format!(
                "CertificateSigningRequest {} is another client's: delete it",
                self.name
            )));
        }
        match state(&there) {
            State::Issued(certificate) => Ok(Answer::Issued(certificate)),
            State::Refused(why) => Ok(Answer::Waits(format!(
                "CertificateSigningRequest {} {why}; with `kubectl delete csr {}` the operator asks again",
                self.name, self.name
            ))),
            State::Approved => Ok(Answer::Waits(format!(
                "CertificateSigningRequest {} is approved and waits for signer {}",
                self.name, self.signer.name
            ))),
            State::New => self.approve(&api, &there).await,
        }
    }

    fn object(&self) -> CertificateSigningRequest {
        let usages = match self.asked.side {
            "server" => &["server auth", "client auth"][..],
            _ => &["client auth"],
        };
        let usages = self.request.usages.iter().copied().chain(usages.iter().copied());
        CertificateSigningRequest {
            metadata: ObjectMeta {
                name: Some(self.name.to_owned()),
                labels: Some(names::managed(BTreeMap::new())),
                ..ObjectMeta::default()
            },
            spec: CertificateSigningRequestSpec {
                expiration_seconds: i32::try_from(LIFETIME.whole_seconds()).ok(),
                request: ByteString(self.request.pem.as_bytes().to_vec()),
                signer_name: self.signer.name.clone(),
                usages: Some(usages.map(str::to_owned).collect()),
                ..CertificateSigningRequestSpec::default()
            },
            status: None,
        }
    }

    /// A user may have given the operator the right to it; else a user approves.
    async fn approve(
        &self,
        api: &Api<CertificateSigningRequest>,
        there: &CertificateSigningRequest,
    ) -> Result<Answer, CallError> {
        let condition = CertificateSigningRequestCondition {
            type_: "Approved".to_owned(),
            status: "True".to_owned(),
            reason: Some(APPROVED.to_owned()),
            message: Some(
                "a Manager of OpenSDN has its certificates issued by this signer".to_owned(),
            ),
            ..CertificateSigningRequestCondition::default()
        };
        let patch = json!({
            "metadata": {"uid": there.uid(), "resourceVersion": there.resource_version()},
            "status": {"conditions": [condition]},
        });
        let call = Call::new(Verb::Patch, "certificatesigningrequests/approval").name(self.name);
        let params = PatchParams {
            field_manager: Some(names::OPERATOR.to_owned()),
            ..PatchParams::default()
        };
        let patch = Patch::Merge(&patch);
        let patched = api.patch_approval(self.name, &params, &patch);
        match call.run(patched).await {
            Ok(_) => Ok(Answer::Waits(format!(
                "CertificateSigningRequest {} waits for signer {}",
                self.name, self.signer.name
            ))),
            Err(error) if error.status().is_some_and(|status| status.code == 403) => {
                Ok(Answer::Waits(format!(
                    "CertificateSigningRequest {} waits to be approved: `kubectl certificate approve {}`",
                    self.name, self.name
                )))
            }
            Err(error) => Err(error),
        }
    }
}

enum State {
    New,
    Approved,
    Refused(String),
    Issued(String),
}

fn state(request: &CertificateSigningRequest) -> State {
    let nothing = CertificateSigningRequestStatus::default();
    let status = request.status.as_ref().unwrap_or(&nothing);
    let conditions = status.conditions.as_deref().unwrap_or_default();
    let is = |type_: &str| conditions.iter().find(|one| one.type_ == type_);
    let words = [("Denied", "was denied"), ("Failed", "failed")];
    for (type_, word) in words {
        if let Some(condition) = is(type_) {
            let said = condition.message.as_deref().or(condition.reason.as_deref());
            return State::Refused(match said.filter(|said| !said.is_empty()) {
                Some(said) => format!("{word}: {said}"),
                None => word.to_owned(),
            });
        }
    }
    let certificate = status.certificate.as_ref().filter(|bytes| !bytes.0.is_empty());
    match certificate {
        Some(bytes) => State::Issued(String::from_utf8_lossy(&bytes.0).into_owned()),
        None if is("Approved").is_some() => State::Approved,
        None => State::New,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(status: Value) -> CertificateSigningRequest {
        serde_json::from_value(json!({"metadata": {"name": "a"}, "status": status,
            "spec": {"request": "", "signerName": "example.com/opensdn"}}))
        .unwrap()
    }

    #[test]
    fn each_state_of_a_request_is_known() {
        let condition = |type_: &str, message: &str| json!({"conditions": [{"type": type_, "status": "True", "reason": "R", "message": message}]});
        assert!(matches!(state(&request(json!({}))), State::New));
        assert!(matches!(state(&request(condition("Approved", ""))), State::Approved));
        let mut issued = condition("Approved", "");
        issued["certificate"] = json!(ByteString(b"PEM".to_vec()));
        assert!(matches!(state(&request(issued.clone())), State::Issued(pem) if pem == "PEM"));
        let refused = |status: Value| match state(&request(status)) {
            State::Refused(why) => why,
            _ => "it is not refused".to_owned(),
        };
        assert_eq!(refused(condition("Denied", "not you")), "was denied: not you");
        assert_eq!(refused(condition("Failed", "")), "failed");
        issued["conditions"][0]["type"] = "Failed".into();
        assert_eq!(refused(issued), "failed", "whatever else is there");
    }

    #[test]
    fn signers_are_asked_by_their_full_names_and_those_of_kubernetes_are_not() {
        for asked in ["example.com/opensdn", "clusterissuers.cert-manager.io/opensdn"] {
            assert!(is_asked(asked), "{asked}");
        }
        for not in ["", "SelfSignedCA", "External", "kubernetes.io/kubelet-serving"] {
            assert!(!is_asked(not), "{not}");
        }
    }
}
