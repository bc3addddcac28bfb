//! The filters of system calls. What is refused is what namespaces do not keep apart, and what opens the kernel's wider surface;
//! what a path decides cannot be said here, as a filter sees numbers only.

use std::{collections::BTreeMap, io};

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter, sock_filter,
};

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// Refused whatever the arguments are: to look into and to change other processes; keys; what is for machines, not for programs.
const REFUSED: &[c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_kcmp,
    libc::SYS_pidfd_getfd,
    // The session's keys are no namespace's.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_userfaultfd,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_kexec_load,
    libc::SYS_kexec_file_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_vhangup,
    libc::SYS_move_pages,
    libc::SYS_migrate_pages,
];

#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[c_long] = &[libc::SYS_iopl, libc::SYS_ioperm];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[c_long] = &[];

/// Programs take "there is no such call" for an older kernel, and do it in another way: flags that lie in memory cannot be read
/// here, and rings do calls that no filter sees.
const ABSENT: &[c_long] =
    &[libc::SYS_clone3, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register];

/// Namespaces of any kind, each a bit of `clone`'s flags.
const NAMESPACES: [i32; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    0x80, // CLONE_NEWTIME
];

/// Sockets that are of some namespace; a virtual machine's host, packets and the kernel's ciphers are not.
const FAMILIES: [i32; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// The filters of a sandbox, as bubblewrap takes them.
pub(super) fn programs() -> Result<Vec<Vec<u8>>, BackendError> {
    let refused = filter(refused(&FAMILIES)?, libc::EPERM)?;
    Ok([refused, absent()?].iter().map(bytes).collect())
}

/// What is refused whatever it is asked for.
#[cfg(test)]
pub(super) fn refused_calls() -> Vec<c_long> {
    REFUSED.iter().chain(REFUSED_HERE).copied().collect()
}

/// Binds this thread where there are no namespaces: to other processes there is no way by their number, and to those that listen
/// at a Unix socket none at all. To be called once nothing can be gained any more (`no_new_privs`), as landlock sees to.
pub(crate) fn refuse_what_landlock_cannot() -> io::Result<()> {
    for program in strict().map_err(io::Error::other)? {
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

fn strict() -> Result<[BpfProgram; 2], BackendError> {
    let mut rules = refused(&[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK])?;
    // Of others: by number, and of all of the user's at once.
    let others: [(c_long, u8); 6] = [
        (libc::SYS_prlimit64, 0),
        (libc::SYS_sched_setaffinity, 0),
        (libc::SYS_sched_setattr, 0),
        (libc::SYS_sched_setscheduler, 0),
        (libc::SYS_sched_setparam, 0),
        (libc::SYS_ioprio_set, 1),
    ];
    for (call, who) in others {
        rules.insert(call, vec![SeccompRule::new(vec![is(who, SeccompCmpOp::Ne, 0)?])?]);
    }
    let of_others = [is(0, SeccompCmpOp::Ne, libc::PRIO_PROCESS as u64)?, is(1, SeccompCmpOp::Ne, 0)?];
    let of_others = of_others.into_iter().map(|condition| SeccompRule::new(vec![condition]));
    rules.insert(libc::SYS_setpriority, of_others.collect::<Result<_, _>>()?);
    Ok([filter(rules, libc::EPERM)?, absent()?])
}

fn absent() -> Result<BpfProgram, BackendError> {
    filter(ABSENT.iter().map(|call| (*call, Vec::new())).collect(), libc::ENOSYS)
}

fn refused(families: &[i32]) -> Result<Rules, BackendError> {
    let mut rules: Rules = REFUSED.iter().chain(REFUSED_HERE).map(|call| (*call, Vec::new())).collect();
    let namespaces = NAMESPACES.iter().map(|bit| {
        let bit = *bit as u64;
        SeccompRule::new(vec![is(0, SeccompCmpOp::MaskedEq(bit), bit)?])
    });
    rules.insert(libc::SYS_clone, namespaces.collect::<Result<_, _>>()?);
    let other = families.iter().map(|family| is(0, SeccompCmpOp::Ne, *family as u64)).collect::<Result<_, _>>()?;
    rules.insert(libc::SYS_socket, vec![SeccompRule::new(other)?]);
    // Who types into a terminal that others read, types as they.
    let typing = [libc::TIOCSTI, libc::TIOCLINUX];
    let typing = typing.into_iter().map(|call| SeccompRule::new(vec![is(1, SeccompCmpOp::Eq, call)?]));
    rules.insert(libc::SYS_ioctl, typing.collect::<Result<_, _>>()?);
    Ok(rules)
}

fn is(argument: u8, operator: SeccompCmpOp, value: u64) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
}

fn filter(rules: Rules, error: i32) -> Result<BpfProgram, BackendError> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let made = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(error as u32), arch)?;
    let program: BpfProgram = made.try_into()?;
    Ok(without_x32(program))
}

/// Refuses the calls of x86's third kind, which have other numbers beneath the same architecture.
#[cfg(target_arch = "x86_64")]
fn without_x32(program: BpfProgram) -> BpfProgram {
    const LOAD: u16 = 0x20; // A := the word at k; the call's number is the first
    const AT_LEAST: u16 = 0x35; // skip jt if A >= k, else jf
    const RETURN: u16 = 0x06;
    const X32: u32 = 0x4000_0000;
    let refuse = 0x0005_0000 | libc::EPERM as u32;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let mut all = vec![step(LOAD, 0, 0, 0), step(AT_LEAST, 0, 1, X32), step(RETURN, 0, 0, refuse)];
    all.extend(program);
    all
}

#[cfg(not(target_arch = "x86_64"))]
fn without_x32(program: BpfProgram) -> BpfProgram {
    program
}

fn bytes(program: &BpfProgram) -> Vec<u8> {
    let step = |step: &sock_filter| {
        let [c0, c1] = step.code.to_ne_bytes();
        let [k0, k1, k2, k3] = step.k.to_ne_bytes();
        [c0, c1, step.jt, step.jf, k0, k1, k2, k3]
    };
    program.iter().flat_map(step).collect()
}
