//! What is mounted beneath a granted folder is not granted. Mounting needs rights that not every machine gives: there
//! the test says so and proves nothing.

use rustix::{
    mount::{MountPropagationFlags, mount_bind, mount_change},
    thread::{UnshareFlags, unshare_unsafe},
};

use super::*;

//
#[test]
fn a_mount_beneath_a_root_is_not_a_part_of_it() {
    // In a thread of its own, whose mounts nobody else sees and which end with it.
    let tried = std::thread::spawn(|| {
        let mut yard = Yard::new();
        fs::create_dir(yard.granted.join("folder")).unwrap();
        yard.write("file", "inside");
        if let Err(error) = mount(&yard) {
            println!("skipped: this machine lets nobody mount in a namespace of their own: {error}");
            return;
        }
        // The old handle is of the namespace where nothing is mounted.
        yard.root = FolderHandle::open(&yard.granted).unwrap();
        let secret = fs::read_to_string(yard.granted.join("folder/secret")).unwrap();
        assert_eq!((secret.as_str(), yard.text("file").as_str()), (SECRET, SECRET), "mounted");

        for path in ["folder", "folder/secret", "folder/../folder/secret", "file"] {
            for read in yard.try_everything(Path::new(path)) {
                assert!(!read.contains(SECRET) && read != "secret", "{path}: {read}");
            }
            yard.assert_untouched(path);
        }
        assert!(matches!(yard.read("folder/secret"), Err(FolderError::Outside)));
        assert!(matches!(yard.read("file"), Err(FolderError::Outside)));
        assert!(matches!(yard.spot("file").look(), Err(FolderError::Outside)));
        assert!(matches!(yard.spot("file").open_file(), Err(FolderError::Outside)));
        assert!(matches!(yard.spot("folder").open_folder(), Err(FolderError::Outside)));
        assert!(matches!(yard.root.spot(Path::new("folder/new")), Err(FolderError::Outside)));
    });
    tried.join().unwrap();
}

#[expect(unsafe_code, reason = "a namespace of its own is had only this way")]
fn mount(yard: &Yard) -> rustix::io::Result<()> {
    // SAFETY: only the view of mounts and the working directory become this thread's own. No descriptor is closed, and the
    // thread ends with the test.
    unsafe { unshare_unsafe(UnshareFlags::NEWNS)? };
    // So that nothing of it is seen elsewhere.
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    mount_bind(&yard.outside, yard.granted.join("folder"))?;
    mount_bind(yard.outside.join("secret"), yard.granted.join("file"))
}
