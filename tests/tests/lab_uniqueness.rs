//! Uniqueness as shipped: in pods on three real nodes, with one replica cut off from the API server
//! and another killed while two hundred clients want the same fifty keys. Against processes of this
//! machine: `uniqueness`.

/// The gate leaves these out where no lab can be had.
mod real_nodes {
    use kube::ResourceExt as _;
    use opensdn_tests::changes::Failed;
    use opensdn_tests::lab_product::{LabProduct, address_of};
    use opensdn_tests::product::NAMESPACE;
    use opensdn_tests::rush::{CLIENTS, one_per_key, rush, until_claims_fit};
    use opensdn_tests::sandbox::Sandbox;
    use opensdn_tests::sandbox::lab::fault::{Blow, Party};

    type Outcome = Result<(), Failed>;

    /// CL-01 to CL-04.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn one_per_key_wins_while_a_replica_is_cut_off_and_another_is_killed() -> Outcome {
        let sandbox = Sandbox::with_real_nodes(3).await?;
        let product = LabProduct::install(&sandbox).await?;
        let lab = sandbox.lab().ok_or("no lab")?;
        let client = sandbox.client()?;
        let pods = product.pods().await?;
        let [cut, killed, _] = pods.as_slice() else {
            return Err(format!("not three replicas: {pods:?}").into());
        };
        let cut = address_of(cut).ok_or("the replica has no address")?;
        let connections: Vec<_> =
            (0..CLIENTS / 10).map(|_| sandbox.client()).collect::<Result<_, _>>()?;
        let mut fault = None;
        let breaks = async || {
            fault = Some(lab.partition_pair(Party::ControlPlane, Party::Pod(cut))?);
            let killed = killed.name_any();
            drop(lab.strike_container(&client, NAMESPACE, &killed, "webhook", Blow::Kill).await?);
            Ok(())
        };
        let answers = rush(&connections, breaks).await?;
        drop(fault);
        one_per_key(&client, &answers).await?;
        until_claims_fit(&client).await
    }
}
