//! Sets up an io_uring and checks that the kernel supports what a ring needs.

use std::io;

use io_uring::{IoUring, Probe, opcode};

/// The dimensions of a ring.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Setup {
    /// The maximum number of operations that one system call submits. Default: 512.
    pub submissions: u32,
    /// How many completions can be pending before the kernel allocates memory for more. Default:
    /// 4,096.
    pub completions: u32,
    /// The number of buffers for received input, a power of two up to 32,768. Default: 4.
    pub buffers: u16,
    /// The size of each of these buffers, in bytes. Default: 64 KiB.
    pub buffer_bytes: u32,
    /// True to fill buffers piece by piece, if the kernel supports that (Linux 6.12). Default:
    /// true.
    pub piecewise: bool,
    /// The number of buffers and their size in bytes, for kernels on which each input takes a whole
    /// buffer. Default: 256 of 4 KiB.
    pub whole_buffers: (u16, u32),
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            submissions: 512,
            completions: 4_096,
            buffers: 4,
            buffer_bytes: 64 << 10,
            piecewise: true,
            whole_buffers: (256, 4 << 10),
        }
    }
}

/// The reason why a ring cannot be created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SetupError {
    /// The system does not allow the use of io_uring.
    #[error("io_uring is not permitted; check kernel.io_uring_disabled and seccomp filters")]
    Forbidden,
    /// The kernel does not support a required feature.
    #[error("kernel does not support {missing}; io_uring requires Linux 6.1 or newer")]
    Missing {
        /// The missing feature.
        missing: &'static str,
    },
    /// Another step failed, for example because of insufficient memory.
    #[error("io_uring: {step} failed")]
    Failed {
        /// The step that failed.
        step: &'static str,
        /// The reason.
        source: io::Error,
    },
}

impl From<SetupError> for io::Error {
    fn from(error: SetupError) -> Self {
        let kind = match &error {
            SetupError::Forbidden => io::ErrorKind::PermissionDenied,
            SetupError::Missing { .. } => io::ErrorKind::Unsupported,
            SetupError::Failed { source, .. } => source.kind(),
        };
        Self::new(kind, error)
    }
}

/// Creates a ring whose work is done only on this thread, when it asks for completions.
pub(crate) fn build(setup: &Setup) -> Result<IoUring, SetupError> {
    let ring = IoUring::builder()
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_taskrun_flag()
        .setup_submit_all()
        .setup_cqsize(setup.completions)
        .build(setup.submissions)
        .map_err(|error| match error.raw_os_error() {
            Some(libc::ENOSYS) => SetupError::Missing {
                missing: "io_uring",
            },
            Some(libc::EINVAL) => SetupError::Missing {
                missing: "deferred task work (IORING_SETUP_DEFER_TASKRUN)",
            },
            _ => explain("set-up", error),
        })?;
    let params = ring.params();
    let features = [
        (params.is_feature_nodrop(), "IORING_FEAT_NODROP"),
        (params.is_feature_ext_arg(), "IORING_FEAT_EXT_ARG"),
        (params.is_feature_fast_poll(), "IORING_FEAT_FAST_POLL"),
        (
            params.is_feature_skip_cqe_on_success(),
            "IORING_FEAT_CQE_SKIP",
        ),
    ];
    require(features)?;
    let mut probe = Probe::new();
    ring.submitter()
        .register_probe(&mut probe)
        .map_err(|error| explain("probing", error))?;
    let operations = [
        (opcode::AcceptMulti::CODE, "IORING_OP_ACCEPT"),
        (opcode::RecvMulti::CODE, "IORING_OP_RECV"),
        (opcode::Send::CODE, "IORING_OP_SEND"),
        (opcode::PollAdd::CODE, "IORING_OP_POLL_ADD"),
        (opcode::AsyncCancel::CODE, "IORING_OP_ASYNC_CANCEL"),
        (opcode::Close::CODE, "IORING_OP_CLOSE"),
    ];
    require(operations.map(|(code, name)| (probe.is_supported(code), name)))?;
    Ok(ring)
}

fn require<const N: usize>(needed: [(bool, &'static str); N]) -> Result<(), SetupError> {
    match needed.into_iter().find(|(is_there, _)| !is_there) {
        Some((_, missing)) => Err(SetupError::Missing { missing }),
        None => Ok(()),
    }
}

/// Distinguishes a missing permission from other failures.
pub(crate) fn explain(step: &'static str, source: io::Error) -> SetupError {
    match source.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => SetupError::Forbidden,
        _ => SetupError::Failed { step, source },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        assert!(require([(true, "one"), (true, "two")]).is_ok());
        let error = require([(true, "one"), (false, "two")]).unwrap_err();
        assert!(error.to_string().contains("support two"), "{error}");
        assert_eq!(
            io::Error::from(error).kind(),
            io::ErrorKind::Unsupported,
            "callers rely on this kind to fall back"
        );
    }

    #[test]
    fn a_prohibition_is_told_from_a_failure() {
        let forbidden = explain("set-up", io::Error::from_raw_os_error(libc::EPERM));
        assert!(matches!(forbidden, SetupError::Forbidden));
        let failed = explain("set-up", io::Error::from_raw_os_error(libc::ENOMEM));
        assert_eq!(failed.to_string(), "io_uring: set-up failed");
        assert_eq!(io::Error::from(failed).kind(), io::ErrorKind::OutOfMemory);
    }
}
