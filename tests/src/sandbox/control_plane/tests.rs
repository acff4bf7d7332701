//! The start when the world is against it.

use std::error::Error;
use std::net::TcpListener;

use super::super::data_folder::DataFolder;
use super::*;

#[tokio::test]
async fn tries_other_ports_when_someone_takes_one() -> Result<(), Box<dyn Error>> {
    let binaries = Binaries::find(None).await?;
    let folder = DataFolder::new()?;
    let authority = Arc::new(Authority::new()?);
    let keys = KeyFiles::write(&authority, &folder.path().join("keys"), &[])?;
    write_private(&folder.path().join("audit-policy.yaml"), AUDIT_POLICY)?;

    // Once etcd's port is taken, once the API server's, then both are free.
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let taken = || Ok(taken.local_addr()?.port());
    let mut asked = 0;
    let port = || {
        asked += 1;
        if asked == 1 || asked == 4 { taken() } else { ports::free() }
    };
    let (control_plane, access) =
        start_api_server(&binaries, &keys, &authority, folder.path(), &Site::Loopback, port)
            .await?;
    control_plane.wait_for_api_server(&access.client()?).await?;
    assert_eq!(asked, 6);
    Ok(())
}
