//! Ways out of a sandbox, each tried. Perl is in every distribution's base, and can do any system call.

use std::{
    net::TcpListener,
    os::unix::net::{SocketAddr, UnixListener},
};

use super::*;

/// What a line of Perl prints that calls one function of the kernel: `ok`, or the name of the error.
fn call(number: libc::c_long, arguments: &str) -> String {
    let arguments = if arguments.is_empty() { String::new() } else { format!(", {arguments}") };
    format!(
        "perl -MErrno -e 'my $x = \"x\"; $! = 0; my $r = syscall({number}{arguments});
            if ($r != -1) {{ print \"ok\\n\" }} else {{ print(($!{{EPERM}} ? \"EPERM\" : $!{{ENOSYS}} ? \"ENOSYS\" : \
         $!{{ESRCH}} ? \"ESRCH\" : $!+0) . \"\\n\") }}'\n"
    )
}

// S-13
#[tokio::test]
async fn calls_that_lead_out_are_refused_each() {
    let Some(place) = Place::new() else { return };
    let refused = filter::refused_calls();
    assert!(refused.len() > 45);
    let script: String = refused.iter().map(|number| call(*number, "0, 0, 0, 0, 0")).collect();
    let came = place.run(&script).await;
    let answers: Vec<&str> = came.out.lines().collect();
    assert_eq!(answers.len(), refused.len(), "{}", came.err);
    for (number, answer) in refused.iter().zip(answers) {
        assert_eq!(answer, "EPERM", "call {number}");
    }
    let absent = [libc::SYS_clone3, libc::SYS_io_uring_setup];
    let script: String = absent.iter().map(|number| call(*number, "0, 0, 0, 0, 0")).collect();
    assert_eq!(place.run(&script).await.out, "ENOSYS\n".repeat(absent.len()));
    // x32 has other numbers beneath the same architecture: 521 is its ptrace.
    #[cfg(target_arch = "x86_64")]
    assert_eq!(place.run(&call(0x4000_0000 + 521, "0, 0, 0, 0")).await.out, "EPERM\n");
}

#[tokio::test]
async fn namespaces_typing_for_others_and_odd_sockets_are_refused_by_what_is_asked() {
    let Some(place) = Place::new() else { return };
    let tiocsti = libc::TIOCSTI;
    let mut script = String::new();
    for flag in [0x0002_0000_u32, 0x0200_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000] {
        script += &call(libc::SYS_clone, &format!("{flag} | 17, 0, 0, 0, 0"));
    }
    script += &call(libc::SYS_ioctl, &format!("0, {tiocsti}, $x"));
    // The upper half of what is asked is nobody's, and counts for nothing.
    script += &call(libc::SYS_ioctl, &format!("0, {tiocsti} | (1 << 40), $x"));
    for family in [libc::AF_VSOCK, libc::AF_PACKET, libc::AF_ALG, libc::AF_BLUETOOTH] {
        script += &call(libc::SYS_socket, &format!("{family}, 1, 0"));
    }
    let came = place.run(&script).await;
    assert_eq!(came.out, "EPERM\n".repeat(13), "{}", came.err);
    let usual = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6];
    let script: String = usual.iter().map(|family| call(libc::SYS_socket, &format!("{family}, 1, 0"))).collect();
    assert_eq!(place.run(&script).await.out, "ok\n".repeat(usual.len()));
}

// H4
#[tokio::test]
async fn no_other_process_is_there() {
    let Some(place) = Place::new() else { return };
    let daemon = std::process::id();
    let script = format!(
        "kill -0 {daemon} 2>/dev/null && echo alive
        kill -9 -1 2>/dev/null
        renice 19 -p {daemon} >/dev/null 2>&1 && echo slower
        prlimit --pid {daemon} --nofile=10:10 2>/dev/null && echo limited
        cat /proc/{daemon}/environ 2>/dev/null; ls -d /proc/[0-9]* | wc -l"
    );
    let came = place.run(&script).await;
    // `kill -9 -1` is for all that one may signal, but oneself: here, nobody.
    let seen: u32 = came.out.trim().parse().unwrap_or_else(|_| panic!("{}{}", came.out, came.err));
    assert!(seen < 8, "{seen} processes");
}

// S-11
#[tokio::test]
async fn only_its_own_streams_are_open() {
    let Some(place) = Place::new() else { return };
    let open = fs::File::open("/etc/passwd").unwrap();
    rustix::io::fcntl_setfd(&open, rustix::io::FdFlags::empty()).unwrap();
    let came = place.run("cd /proc/self/fd && for number in *; do readlink $number | cut -d: -f1; done").await;
    let mut lines: Vec<&str> = came.out.lines().collect();
    lines.retain(|line| *line != "pipe" && !line.is_empty() && !line.starts_with("/proc/"));
    assert_eq!(lines, [""; 0], "{}", came.err);
}

// H2, H8, M4
#[tokio::test]
async fn nothing_of_the_persons_is_read_written_or_changed() {
    let Some(place) = Place::new() else { return };
    let outside = place.path("outside/file");
    fs::write(place.path("home/.secret"), "secret").unwrap();
    let segment = PathBuf::from(format!("/dev/shm/prism-test-{}", std::process::id()));
    fs::write(&segment, "segment").unwrap();
    let before = fs::metadata(&outside).unwrap();
    let script = format!(
        "cd {real}
        cat outside/file home/.secret {segment} /etc/shadow /etc/machine-id 2>/dev/null
        (echo x >>outside/file) 2>/dev/null && echo written
        chmod 777 outside/file home/.secret /usr/bin 2>/dev/null && echo mode
        touch /usr/bin/evil /etc/evil /evil 2>/dev/null && echo system
        ln outside/file granted/hard 2>/dev/null && echo linked
        ln /usr/bin/env granted/hard 2>/dev/null && echo linked
        (echo x >granted/.git/config) 2>/dev/null && echo git
        mv granted/.git granted/git 2>/dev/null && echo moved
        rm -rf granted/.git 2>/dev/null && echo removed
        ls /dev/pts | grep -v ptmx; ls /dev/sd* /dev/vd* /dev/kvm /dev/fuse /dev/mem 2>/dev/null
        ls -A /run; ls /sys 2>/dev/null; echo end",
        real = place.real.display(),
        segment = segment.display(),
    );
    let came = place.run(&script).await;
    fs::remove_file(&segment).unwrap();
    assert_eq!(came.out, "end\n", "{}", came.err);
    assert_eq!(fs::metadata(&outside).unwrap().mode(), before.mode());
    assert_eq!(fs::read_to_string(place.path("granted/.git/file")).unwrap(), "granted/.git");
    assert!(!place.path("granted/hard").exists());
}

// H1, S-16
#[tokio::test]
async fn sockets_of_others_are_out_of_reach() {
    let Some(place) = Place::new() else { return };
    let connect = |place: &Path| {
        format!(
            "perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die \"socket\\n\";
                print(connect($s, pack_sockaddr_un(\"{}\")) ? \"reached\\n\" : \"refused\\n\")'\n",
            place.display()
        )
    };
    let outside = UnixListener::bind(place.path("outside/socket")).unwrap();
    let granted = UnixListener::bind(place.path("granted/socket")).unwrap();
    let name = format!("prism-test-{}", std::process::id());
    let address = <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(&name).unwrap();
    let nameless = UnixListener::bind_addr(&address).unwrap();
    let abstractly = PathBuf::from(format!("\\0{name}"));
    let script =
        connect(&place.path("outside/socket")) + &connect(&place.path("granted/socket")) + &connect(&abstractly);
    for network in [NetworkAccess::Own, NetworkAccess::All] {
        let came = place.run_in(&place.fence(network), &script).await;
        assert_eq!(came.out, "refused\n".repeat(3), "{network:?}: {}", came.err);
    }
    for listener in [&outside, &granted, &nameless] {
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
    }
    // Its own are its own.
    let own = "perl -MSocket -e 'socket(my $l, AF_UNIX, SOCK_STREAM, 0); bind($l, pack_sockaddr_un(\"own\")) or die $!;
        listen($l, 1); socket(my $s, AF_UNIX, SOCK_STREAM, 0);
        print(connect($s, pack_sockaddr_un(\"own\")) ? \"reached\\n\" : \"refused\\n\")'";
    assert_eq!(place.run(own).await.out, "reached\n");
}

// It shows for an administrator, who sees the folders of all.
#[tokio::test]
async fn a_socket_in_a_folder_that_nobody_inside_enters_keeps_no_sandbox_from_being_made() {
    let Some(place) = Place::new() else { return };
    let theirs = place.path("granted/theirs");
    fs::create_dir(&theirs).unwrap();
    let _listener = UnixListener::bind(theirs.join("socket")).unwrap();
    fs::set_permissions(&theirs, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(&theirs, Some(65_533), Some(65_533)).unwrap();
        assert_eq!(place.run("ls theirs 2>/dev/null || echo closed").await.out, "closed\n");
    } else {
        let came = place.run(
            "perl -MSocket -e 'socket(my $s, AF_UNIX, SOCK_STREAM, 0);
            print(connect($s, pack_sockaddr_un(\"theirs/socket\")) ? \"reached\\n\" : \"refused\\n\")'",
        );
        assert_eq!(came.await.out, "refused\n", "one's own is covered");
    }
}

#[tokio::test]
async fn the_machines_network_is_there_if_it_is_granted_and_never_the_daemons_own_port() {
    let Some(place) = Place::new() else { return };
    let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = theirs.local_addr().unwrap().port();
    let daemons = TcpListener::bind("127.0.0.1:0").unwrap();
    place.sandbox.keep_from(daemons.local_addr().unwrap().port());
    let script = format!(
        "for port in {port} {}; do (exec 3<>/dev/tcp/127.0.0.1/$port) 2>/dev/null && echo reached || echo refused; done",
        daemons.local_addr().unwrap().port()
    );
    let run = async |network| {
        let child = place.spawn(&place.fence(network), &["bash", "-c", &script]).unwrap();
        end_of(child).await.out
    };
    assert_eq!(run(NetworkAccess::Own).await, "refused\nrefused\n");
    assert_eq!(run(NetworkAccess::All).await, "reached\nrefused\n");
}

#[tokio::test]
async fn without_the_network_its_own_loopback_works() {
    let Some(place) = Place::new() else { return };
    let script = "perl -MIO::Socket::INET -e 'my $l = IO::Socket::INET->new(Listen => 1, LocalAddr => \"127.0.0.1\") or die $!;
        my $s = IO::Socket::INET->new(PeerAddr => \"127.0.0.1\", PeerPort => $l->sockport) or die $!; print \"reached\\n\"'";
    let came = place.run(script).await;
    assert_eq!(came.out, "reached\n", "{}", came.err);
}

// S-07, S-12
#[tokio::test]
async fn it_can_do_nothing_of_an_administrators_and_what_is_around_it_says_nothing() {
    let Some(place) = Place::new() else { return };
    let script = "grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status | tr -d '\\t '
        tr '\\0' '\\n' </proc/1/environ 2>/dev/null | grep -i prism
        tr '\\0' ' ' </proc/1/cmdline | grep -o 'granted'
        mount -t tmpfs none /mnt 2>/dev/null && echo mounted; echo end";
    let came = place.run(script).await;
    let none = "0000000000000000";
    let expected = format!("CapPrm:{none}\nCapEff:{none}\nCapBnd:{none}\nNoNewPrivs:1\nSeccomp:2\nend\n");
    assert_eq!(came.out, expected, "{}", came.err);
}

#[tokio::test]
async fn a_memory_that_others_cannot_see_is_bounded() {
    let Some(place) = Place::new() else { return };
    let came = place.run("head -c 700M /dev/zero >/dev/shm/fill 2>/dev/null || echo full; rm -f /dev/shm/fill").await;
    assert_eq!(came.out, "full\n");
}

#[tokio::test]
async fn files_are_moved_and_linked_between_folders_as_builds_do() {
    let Some(place) = Place::new() else { return };
    let script = "mkdir a b && echo text >a/x && perl -e 'rename(\"a/x\", \"b/y\") or die $!; link(\"b/y\", \"a/z\") or die $!' && cat a/z";
    for network in [NetworkAccess::Own, NetworkAccess::All] {
        let came = place.run_in(&place.fence(network), &format!("{script}; rm -r a b")).await;
        assert_eq!(came.out, "text\n", "{}", came.err);
    }
}

// What is mounted beneath a folder of its own needs a place there, and bubblewrap makes that while all of the machine is in reach.
#[tokio::test]
async fn a_link_that_was_left_in_a_folder_of_its_own_leads_nowhere() {
    let Some(place) = Place::new() else { return };
    fs::create_dir_all(place.path("home/.tool/bin")).unwrap();
    fs::write(place.path("home/.toolrc"), "settings").unwrap();
    let read = vec![place.path("home/.tool/bin"), place.path("home/.toolrc")];
    let fence = SandboxPolicy { read, ..place.fence(NetworkAccess::Own) };
    let outside = place.path("outside");
    let script = format!(
        "cat ~/.toolrc; cd ~ && mkdir kept && ln -s /oldroot{0} planted && ln -s /oldroot{0}/made dangling; echo; echo end",
        outside.display()
    );
    assert_eq!(place.run_in(&fence, &script).await.out, "settings\nend\n");
    // As it would be after a first run without any of these tools.
    let own = |name: &str| place.path("own/home").join(name);
    fs::remove_dir_all(own(".tool")).unwrap();
    fs::remove_file(own(".toolrc")).unwrap();
    fs::rename(own("planted"), own(".tool")).unwrap();
    fs::rename(own("dangling"), own(".toolrc")).unwrap();
    assert_eq!(place.run_in(&fence, "ls -d ~/kept >/dev/null && echo runs").await.out, "runs\n");
    let names: Vec<_> = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["file"]);

    fs::create_dir_all(place.path("home/.tool/project")).unwrap();
    let held = vec![FolderHandle::open(&place.path("home/.tool/project")).unwrap()];
    let error = place.spawn(&SandboxPolicy { held, ..place.fence(NetworkAccess::Own) }, &["true"]).unwrap_err();
    let why = std::error::Error::source(&error).unwrap().to_string();
    assert!(why.contains("has left a link where") && !outside.join("project").exists(), "{why}");
}

#[tokio::test]
async fn what_is_closed_closes_no_folder_of_its_own_that_seems_to_be_there() {
    let Some(place) = Place::new() else { return };
    fs::create_dir_all(place.path("home/.tool/bin")).unwrap();
    for closed in ["home", "home/closed"] {
        let closed = vec![place.path(closed)];
        fs::create_dir_all(&closed[0]).unwrap();
        let fence = SandboxPolicy { read: vec![place.path("home/.tool")], closed, ..place.fence(NetworkAccess::Own) };
        let came = place.run_in(&fence, "echo mine >~/made && cat ~/made; ls ~/.tool; ls ~/closed; true").await;
        let tool = if fence.closed[0].ends_with("home") { "" } else { "bin\n" };
        assert_eq!(came.out, format!("mine\n{tool}"), "{}", came.err);
    }
}

// Who may write one of these folders was told so by its name.
#[tokio::test]
async fn a_guarded_folder_that_is_granted_itself_is_written() {
    let Some(place) = Place::new() else { return };
    let held = ["granted", "granted/.git"].map(|name| FolderHandle::open(&place.path(name)).unwrap()).into();
    let came = place
        .run_in(&SandboxPolicy { held, ..place.fence(NetworkAccess::Own) }, "echo new >.git/made && cat .git/made")
        .await;
    assert_eq!(came.out, "new\n", "{}", came.err);
}
