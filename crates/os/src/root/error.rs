//! Why something beneath a root was not opened or changed. The caller knows the path, and says it.

use std::io;

use rustix::io::Errno;

#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("it leads out of the granted folder")]
    Outside,
    #[error("it is not there")]
    NotFound,
    #[error("it is already there")]
    Exists,
    #[error("a symbolic link is in the way; name what it points to")]
    Linked,
    #[error("it is a folder")]
    IsFolder,
    #[error("a part of the path is not a folder")]
    NotAFolder,
    #[error("the folder is not empty")]
    NotEmpty,
    #[error("it is neither a file nor a folder")]
    Special,
    #[error("it is read-only")]
    ReadOnly,
    #[error("the system does not permit it")]
    NotPermitted,
    #[error("the two are on different file systems; write the new file and delete the old one")]
    Apart,
    #[error("a folder cannot be moved into itself")]
    IntoItself,
    #[error("the path is empty")]
    Empty,
    #[error("the path has a NUL in it")]
    Nul,
    #[error("the path, or a name in it, is too long")]
    TooLong,
    #[error("the path does not end in a name")]
    NoName,
    #[error("the path is not absolute")]
    Relative,
    #[error("something on the path is being renamed all the time; try again")]
    Restless,
    #[error("this kernel cannot open files beneath a folder (openat2, Linux 5.6)")]
    OldKernel,
    #[error("{0}")]
    System(io::Error),
}

impl From<Errno> for FolderError {
    fn from(error: Errno) -> Self {
        match error {
            // Both for a way that leads out and for one that crosses into another mount.
            Errno::XDEV => Self::Outside,
            Errno::NOENT => Self::NotFound,
            Errno::EXIST => Self::Exists,
            Errno::LOOP => Self::Linked,
            Errno::ISDIR => Self::IsFolder,
            Errno::NOTDIR => Self::NotAFolder,
            Errno::NOTEMPTY => Self::NotEmpty,
            Errno::NXIO | Errno::NODEV => Self::Special,
            Errno::ROFS => Self::ReadOnly,
            Errno::ACCESS | Errno::PERM => Self::NotPermitted,
            Errno::NAMETOOLONG => Self::TooLong,
            Errno::AGAIN => Self::Restless,
            Errno::NOSYS => Self::OldKernel,
            other => Self::System(other.into()),
        }
    }
}
