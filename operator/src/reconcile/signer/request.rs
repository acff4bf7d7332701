//! Requests for certificates, as `certificates.k8s.io` has them: what there is of a component, and what becomes of one.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
    CertificateSigningRequestStatus,
};
use kube::ResourceExt as _;
use kube::api::ObjectMeta;
use opensdn_pki::{SigningRequest, request};
use opensdn_runtime::apply::{Context as Writer, apply as apply_object, patch_approval, read};
use opensdn_runtime::call::{Call, CallError, Verb};
use opensdn_runtime::list::{page, read_object};
use serde_json::json;
use time::OffsetDateTime;

use crate::build::certificates::LIFETIME;
use crate::build::digest;
use crate::names;

/// Why a request is approved, for who looks at it.
const APPROVED: &str = "ApprovedByOpensdnOperator";
/// Annotations that change what cert-manager issues begin so (1.11, `pkg/util/pki/kube.go`).
const OF_CERT_MANAGER: &str = "experimental.cert-manager.io/";
/// Of what a signer or approver says so much is in the status.
const MOST_SAID: usize = 1024;
/// More than are asked for at once. Anyone who may make requests can give them our label: what is behind these is read by its name.
const MOST: u32 = 500;

/// Those of one component, by name.
pub(super) type Requests = BTreeMap<String, CertificateSigningRequest>;

/// Those that are labelled so.
///
/// # Errors
/// The call fails.
pub(super) async fn labelled(client: &kube::Client, uid: &str) -> Result<Requests, CallError> {
    let query = format!(
        "/apis/certificates.k8s.io/v1/certificatesigningrequests?labelSelector={}%3D{uid}",
        names::REQUESTED_FOR
    );
    let mut most = MOST;
    let read = page(client, &query, "application/json", &mut most);
    let call = Call::new(Verb::List, "certificatesigningrequests");
    let all = call.run(read).await?.into_objects();
    let all = all.filter_map(|one| serde_json::from_value(one).ok());
    Ok(all.map(|one: CertificateSigningRequest| (one.name_any(), one)).collect())
}

/// Whom the API server knows the client as.
///
/// # Errors
/// The call fails, or its answer has no name.
pub(super) async fn own_user(client: &kube::Client) -> Result<String, CallError> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let ask = async {
        let request = http::Request::post("/apis/authentication.k8s.io/v1/selfsubjectreviews")
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(review.to_string().into_bytes())
            .map_err(kube::Error::HttpError)?;
        read_object::<SelfSubjectReview>(client, request).await
    };
    let review = Call::new(Verb::Create, "selfsubjectreviews").run(ask).await?;
    let user = review.status.and_then(|status| status.user_info);
    Ok(user.and_then(|user| user.username).unwrap_or_default())
}

/// One certificate of a component that is asked for.
pub(super) struct Sought<'a> {
    /// Whom.
    pub(super) signer: &'a str,
    /// The UID of the component, and how its requests begin.
    pub(super) uid: &'a str,
    pub(super) prefix: &'a str,
    /// For servers and clients, or for clients alone.
    pub(super) is_server: bool,
    pub(super) request: SigningRequest,
}

/// What a signer has said.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The certificate, in PEM.
    Issued(String),
    /// It is neither approved nor denied.
    New,
    /// Why there is none yet.
    Waits(String),
    /// What somebody has to put right, before there can be one.
    Wrong(String),
    /// Another has taken the name, and it can never be the operator's.
    Taken(String),
}

impl Sought<'_> {
    /// No two requests that differ in anything have one. It is the same for the same, as long as its key is.
    pub(super) fn name(&self) -> String {
        let (usages, lasts) = (self.usages().join(","), self.lasts().to_string());
        let parts = [self.signer, self.uid, &usages, &lasts].map(str::as_bytes);
        let digest = digest(parts.into_iter().chain([self.request.content.as_slice()]));
        let digest = digest.get(..12).unwrap_or(&digest);
        let side = if self.is_server { "server" } else { "client" };
        format!("{}-{side}-{digest}", self.prefix)
    }

    fn usages(&self) -> Vec<String> {
        let sides =
            if self.is_server { &["server auth", "client auth"][..] } else { &["client auth"] };
        self.request.usages.iter().chain(sides).map(|usage| (*usage).to_owned()).collect()
    }

    fn lasts(&self) -> i32 {
        i32::try_from(LIFETIME.whole_seconds()).unwrap_or(i32::MAX)
    }

    fn object(&self) -> CertificateSigningRequest {
        let label = (names::REQUESTED_FOR.to_owned(), self.uid.to_owned());
        CertificateSigningRequest {
            metadata: ObjectMeta {
                name: Some(self.name()),
                labels: Some(names::managed([label].into())),
                ..ObjectMeta::default()
            },
            spec: CertificateSigningRequestSpec {
                expiration_seconds: Some(self.lasts()),
                request: ByteString(self.request.pem.as_bytes().to_vec()),
                signer_name: self.signer.to_owned(),
                usages: Some(self.usages()),
                ..CertificateSigningRequestSpec::default()
            },
            status: None,
        }
    }

    /// Makes it, unless there is one of that name, which may have lost its label. The request, and whether it was made now.
    ///
    /// # Errors
    /// A call fails.
    pub(super) async fn read_or_make(
        &self,
        writer: &Writer,
    ) -> Result<(CertificateSigningRequest, bool), CallError> {
        if let Some(there) = read(writer, None, &self.name()).await? {
            return Ok((there, false));
        }
        let made = apply_object(writer, &self.object()).await?;
        tracing::info!(name = made.name_any(), signer = self.signer, "asked for a certificate");
        Ok((made, true))
    }

    /// Whether it is this that is asked for there, byte for byte but for the signature: its content cannot be changed, but anyone who may
    /// make requests can take the name.
    fn is_in(&self, there: &CertificateSigningRequest) -> bool {
        let spec = &there.spec;
        // By which cert-manager would issue a CA, or for another time.
        let has_wishes = there.annotations().keys().any(|key| key.contains(OF_CERT_MANAGER));
        let usages = spec.usages.iter().flatten();
        let sorted = |mut usages: Vec<String>| {
            usages.sort_unstable();
            usages
        };
        !has_wishes
            && spec.signer_name == self.signer
            && request::content(&spec.request.0).as_ref() == Some(&self.request.content)
            && sorted(usages.cloned().collect()) == sorted(self.usages())
            && spec.expiration_seconds == Some(self.lasts())
    }

    /// What became of it. `own` is whom the API server knows the operator as.
    pub(super) fn answer(&self, there: &CertificateSigningRequest, own: &str) -> Answer {
        let name = there.name_any();
        let again = format!("with `kubectl delete csr {name}` the operator asks again");
        if !self.is_in(there) || there.spec.username.as_deref() != Some(own) {
            return Answer::Taken(format!(
                "CertificateSigningRequest {name} is not what the operator asks for, and another client's: it asks with another key"
            ));
        }
        match state(there) {
            State::New => Answer::New,
            State::Issued(certificate) => Answer::Issued(certificate),
            State::Refused(why) => {
                Answer::Wrong(format!("CertificateSigningRequest {name} {why}; {again}"))
            }
            State::Approved => Answer::Waits(format!(
                "CertificateSigningRequest {name} is approved and waits for signer {}",
                self.signer
            )),
        }
    }
}

/// Approves a request. A user may have given the operator the right to it; else a user approves.
///
/// # Errors
/// The call fails; where the right is missing, with 403.
pub(super) async fn approve(
    writer: &Writer,
    there: &CertificateSigningRequest,
) -> Result<(), CallError> {
    let condition = CertificateSigningRequestCondition {
        type_: "Approved".to_owned(),
        status: "True".to_owned(),
        reason: Some(APPROVED.to_owned()),
        message: Some("a Manager of OpenSDN has its certificates issued by this signer".to_owned()),
        ..CertificateSigningRequestCondition::default()
    };
    // A merge patch writes the whole list.
    let before = there.status.as_ref().and_then(|status| status.conditions.clone());
    let conditions = [before.unwrap_or_default(), vec![condition]].concat();
    patch_approval(writer, there, &conditions).await
}

/// When it was made, by the clock of the API server.
pub(super) fn made_at(request: &CertificateSigningRequest) -> Option<OffsetDateTime> {
    let seconds = request.metadata.creation_timestamp.as_ref()?.0.as_second();
    OffsetDateTime::from_unix_timestamp(seconds).ok()
}

#[derive(Debug, PartialEq, Eq)]
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
                Some(said) => format!(
                    "{word}: {}",
                    said.get(..said.floor_char_boundary(MOST_SAID)).unwrap_or_default()
                ),
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
    use opensdn_pki::{KeyKind, LeafProfile, new_key};
    use serde_json::{Value, json};

    use super::*;

    fn with(status: Value) -> CertificateSigningRequest {
        serde_json::from_value(json!({"metadata": {"name": "a"}, "status": status,
            "spec": {"request": "", "signerName": "example.com/opensdn"}}))
        .unwrap()
    }

    #[test]
    fn each_state_of_a_request_is_known() {
        let condition = |type_: &str, message: &str| json!({"conditions": [{"type": type_, "status": "True", "reason": "R", "message": message}]});
        assert_eq!(state(&with(json!({}))), State::New);
        assert_eq!(state(&with(condition("Approved", ""))), State::Approved);
        let mut issued = condition("Approved", "");
        issued["certificate"] = json!(ByteString(b"PEM".to_vec()));
        assert_eq!(state(&with(issued.clone())), State::Issued("PEM".to_owned()));
        let refused = |why: &str| State::Refused(why.to_owned());
        assert_eq!(state(&with(condition("Denied", "not you"))), refused("was denied: not you"));
        assert_eq!(state(&with(condition("Failed", ""))), refused("failed"));
        issued["conditions"][0]["type"] = "Failed".into();
        assert_eq!(state(&with(issued)), refused("failed"), "whatever else is there");
        let State::Refused(long) = state(&with(condition("Denied", &"ä".repeat(9_999)))) else {
            panic!("it is denied")
        };
        assert!(long.len() < 1_100, "{}", long.len());
    }

    fn sought(key: &str, name: &str) -> Sought<'static> {
        let profile = LeafProfile::server("a", vec![name.to_owned()]);
        Sought {
            signer: "example.com/opensdn",
            uid: "u",
            prefix: "opensdn-operator-tf-redis1",
            is_server: true,
            request: request::request(&profile, key).unwrap(),
        }
    }

    #[test]
    fn a_request_that_another_client_has_put_in_the_place_of_ours_is_neither_approved_nor_used() {
        let key = new_key(KeyKind::EcdsaP256).unwrap();
        let ours = sought(&key, "host-1");
        let mut there = ours.object();
        there.spec.username = Some("operator".to_owned());
        let answer = |there: &CertificateSigningRequest| ours.answer(there, "operator");
        assert_eq!(answer(&there), Answer::New);
        assert!(matches!(ours.answer(&there, "another"), Answer::Taken(_)), "of another user");
        // Each time it is signed anew.
        let again = sought(&key, "host-1");
        assert_ne!(ours.request.pem, again.request.pem);
        assert_eq!((again.name(), again.answer(&there, "operator")), (ours.name(), Answer::New));
        let mut issued = there.clone();
        issued.status = with(json!({"certificate": ByteString(b"PEM".to_vec())})).status;
        assert_eq!(answer(&issued), Answer::Issued("PEM".to_owned()));
        let mut wishes = issued.clone();
        let wish = ("experimental.cert-manager.io/request-is-ca".to_owned(), "true".to_owned());
        wishes.annotations_mut().extend([wish]);
        assert!(matches!(answer(&wishes), Answer::Taken(_)));
        let taken = |change: &dyn Fn(&mut CertificateSigningRequestSpec)| {
            let mut there = issued.clone();
            change(&mut there.spec);
            match answer(&there) {
                Answer::Taken(why) => why.contains("another client's"),
                _ => false,
            }
        };
        let other = sought(&new_key(KeyKind::EcdsaP256).unwrap(), "host-1").request;
        assert_ne!(ours.name(), sought(&key, "host-2").name());
        assert!(taken(&|spec| spec.request = ByteString(other.pem.as_bytes().to_vec())));
        assert!(taken(&|spec| spec.request = ByteString(b"none".to_vec())));
        // Readers of PEM disagree which of the two it is.
        let both = format!("x{}\n{}", ours.request.pem, other.pem);
        assert!(taken(&|spec| spec.request = ByteString(both.as_bytes().to_vec())));
        assert!(taken(&|spec| spec.signer_name = "example.com/other".to_owned()));
        assert!(taken(&|spec| spec.expiration_seconds = None));
        assert!(taken(&|spec| spec.usages.as_mut().unwrap().push("cert sign".to_owned())));
        assert!(!taken(&|spec| spec.usages.as_mut().unwrap().reverse()), "it is the same");
    }
}
