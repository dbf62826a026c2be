//! Reads the header fields of messages on request streams (RFC 9114 §4.1).

use quinn::RecvStream;

use crate::{
    fault::{Code, Failure, Fault},
    frame::{HEADERS, Head, HeadReader, truncated, unexpected},
    qpack::{self, Section},
};

/// Reads the next field section, or returns `None` if the stream ends.
///
/// # Errors
/// Returns an error if the peer violates the protocol, or if the stream or the connection is lost.
pub(crate) async fn read_section(
    recv: &mut RecvStream,
    bytes_max: u32,
) -> Result<Option<Section>, Failure> {
    // Frames that are skipped before the fields count towards the same limit.
    let mut skippable = u64::from(bytes_max);
    while let Some(head) = read_head(recv).await? {
        let bytes = head.payload_bytes;
        match head.kind {
            HEADERS if bytes > u64::from(bytes_max) => return Ok(Some(Section::TooLarge)),
            HEADERS => {
                let mut payload = Vec::new();
                read_payload(recv, bytes, |part| payload.extend_from_slice(part)).await?;
                return Ok(Some(qpack::decode(&payload, bytes_max as usize)?));
            }
            _ if head.is_unknown()? => {
                let left = skippable.checked_sub(bytes.saturating_add(2));
                skippable = left.ok_or(TOO_MUCH)?;
                read_payload(recv, bytes, |_| ()).await?;
            }
            _ => return Err(unexpected().into()),
        }
    }
    Ok(None)
}

const TOO_MUCH: Fault = Fault::connection(Code::EXCESSIVE_LOAD, "too many unknown frames");

async fn read_head(recv: &mut RecvStream) -> Result<Option<Head>, Failure> {
    let mut reader = HeadReader::default();
    loop {
        match recv.read(reader.wanted()).await? {
            Some(bytes) => {
                if let Some(head) = reader.advance(bytes) {
                    return Ok(Some(head));
                }
            }
            None if reader.is_empty() => return Ok(None),
            None => return Err(truncated().into()),
        }
    }
}

async fn read_payload(
    recv: &mut RecvStream,
    mut left: u64,
    mut take: impl FnMut(&[u8]),
) -> Result<(), Failure> {
    while left > 0 {
        let bytes_max = usize::try_from(left).unwrap_or(usize::MAX);
        let chunk = recv.read_chunk(bytes_max, true).await?;
        let chunk = chunk.ok_or(truncated())?;
        left -= chunk.bytes.len() as u64;
        take(&chunk.bytes);
    }
    Ok(())
}
