use std::{fs, time::Duration};

use super::Folder;
use crate::{Announced, Store, StoredFile, UploadError, UploadId};

type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[tokio::test]
async fn file_appears_under_its_name_once_it_is_complete() -> Result {
    let place = tempfile::tempdir()?;
    let folder = Folder::open(place.path()).await?;
    let mut file = folder
        .create(UploadId::random(), &Announced::new("a.txt", 8))
        .await?;
    file.write(b"Spam").await?;
    assert!(!place.path().join("a.txt").exists());
    file.write(b"Eggs").await?;
    assert_eq!(file.finish().await?["name"], "a.txt");
    assert_eq!(fs::read(place.path().join("a.txt"))?, b"SpamEggs");
    assert_eq!(fs::read_dir(place.path().join(".partial"))?.count(), 0);
    Ok(())
}

#[tokio::test]
async fn existing_file_is_never_replaced() -> Result {
    let place = tempfile::tempdir()?;
    let folder = Folder::open(place.path()).await?;
    let announced = Announced::new("a.txt", 4);
    let mut file = folder.create(UploadId::random(), &announced).await?;
    file.write(b"Spam").await?;
    // Another process, or another upload, is faster.
    fs::write(place.path().join("a.txt"), "Eggs")?;
    assert!(matches!(file.finish().await, Err(UploadError::Exists)));
    assert_eq!(fs::read(place.path().join("a.txt"))?, b"Eggs");
    assert_eq!(fs::read_dir(place.path().join(".partial"))?.count(), 0);
    let again = folder.create(UploadId::random(), &announced).await;
    assert!(matches!(again, Err(UploadError::Exists)));
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn symbolic_link_is_not_followed() -> Result {
    let place = tempfile::tempdir()?;
    let folder = Folder::open(place.path().join("in")).await?;
    let outside = place.path().join("outside");
    std::os::unix::fs::symlink(&outside, place.path().join("in/a.txt"))?;
    let created = folder
        .create(UploadId::random(), &Announced::new("a.txt", 1))
        .await;
    assert!(matches!(created, Err(UploadError::Exists)));
    assert!(!outside.exists());
    Ok(())
}

#[tokio::test]
async fn partial_file_is_reopened_where_it_ends_by_who_announces_the_same() -> Result {
    let place = tempfile::tempdir()?;
    let (id, announced) = (UploadId::random(), Announced::new("a.txt", 8));
    let folder = Folder::open(place.path()).await?;
    let mut file = folder.create(id, &announced).await?;
    file.write(b"Spam").await?;
    drop((file, folder));

    let folder = Folder::open(place.path()).await?;
    for other in [Announced::new("a.txt", 9), Announced::new("b.txt", 8)] {
        let reopened = folder.reopen(id, &other).await;
        assert!(matches!(reopened, Err(UploadError::Mismatch)));
    }
    let unknown = folder.reopen(UploadId::random(), &announced).await;
    assert!(matches!(unknown, Err(UploadError::UnknownUpload)));
    let (mut file, bytes) = folder.reopen(id, &announced).await?;
    assert_eq!(bytes, 4);
    file.write(b"Eggs").await?;
    file.finish().await?;
    assert_eq!(fs::read(place.path().join("a.txt"))?, b"SpamEggs");
    Ok(())
}

#[tokio::test]
async fn upload_without_bytes_leaves_nothing_behind() -> Result {
    let place = tempfile::tempdir()?;
    let folder = Folder::open(place.path()).await?;
    let file = folder
        .create(UploadId::random(), &Announced::new("a.txt", 8))
        .await?;
    drop(file);
    assert_eq!(fs::read_dir(place.path().join(".partial"))?.count(), 0);
    Ok(())
}

#[tokio::test]
async fn partial_files_that_are_too_old_or_too_many_are_deleted() -> Result {
    let place = tempfile::tempdir()?;
    let partial = place.path().join(".partial");
    let files = |suffix: &str| -> usize {
        let entries = fs::read_dir(&partial).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name());
        names
            .filter(|name| name.to_string_lossy().ends_with(suffix))
            .count()
    };
    let folder = Folder::open(place.path()).await?.with_partial_max(16);
    for index in 0..100 {
        let announced = Announced::new(format!("{index}"), 8);
        let mut file = folder.create(UploadId::random(), &announced).await?;
        file.write(b"x").await?;
    }
    let most = 16 + 16 / 8 + 1;
    assert!(files(".part") <= most && files(".json") <= most);
    assert!(files(".part") >= 16);

    let folder = folder.with_partial_age_max(Duration::ZERO);
    folder.clean().await?;
    assert_eq!((files(".part"), files(".json")), (0, 0));
    Ok(())
}
