# Thirty ways out of a fence. Each prints `NUMBER name: OUT` if it has led out and `NUMBER name: held` if not; of what only
# somebody outside can see it says `begun`. What to try them on stands in `targets`, beside this file: lines of NAME=VALUE.
use strict;
use warnings;
use Fcntl;
use POSIX ();
use Socket;

my ($folder) = $0 =~ m{^(/.*)/};
my %at = map { /^(\w+)=(.*)$/ ? ($1, $2) : () } split /\n/, slurp("$folder/targets");
my ($home, $project, $secret) = @at{qw(home project secret)};
$secret or die "nobody says what to try\n";

# What was open from the start. Perl has this file open while it runs.
opendir my $handles, "/proc/self/fd";
my @inherited = grep { /^\d+$/ && $_ > 2 } readdir $handles;
@inherited = grep { my $leads = readlink "/proc/self/fd/$_"; defined $leads && $leads ne $0 && $leads !~ m{/fd$} } @inherited;
closedir $handles;

my %calls = (
    x86_64 => {
        ptrace => 101, process_vm_readv => 310, pidfd_open => 434, pidfd_getfd => 438, keyctl => 250, unshare => 272,
        mount => 165, prlimit64 => 302, sched_setaffinity => 203,
    },
    aarch64 => {
        ptrace => 117, process_vm_readv => 270, pidfd_open => 434, pidfd_getfd => 438, keyctl => 219, unshare => 97,
        mount => 40, prlimit64 => 261, sched_setaffinity => 122,
    },
);
my $number_of = $calls{ (POSIX::uname())[4] } or die "no calls are known of this machine\n";

my @ways = (
    "read a secret in the home folder" => sub { slurp("$home/.ssh/id_ed25519") eq $secret },
    "write a file in the home folder" => sub { amend("$home/documents/letter") },
    "write a cache that tools run from" => sub {
        any(sub { amend("$home/$_[0]") }, ".npm/_npx/1/index.js", ".cache/uv/wheel.py", ".cargo/registry/src/build.rs");
    },
    "connect to a socket in the home folder" => sub { reaches("$home/agent.sock") },
    "connect to a socket in the granted folder" => sub { reaches("$project/dev.sock") },
    "connect to a socket without a file" => sub { reaches("\0$at{nameless}") },
    "connect to a port of this computer" => sub { dials($at{port}) },
    "connect to Prism" => sub { dials($at{prism_port}) },
    "look at another process in /proc" => sub { any(\&shows, $at{neighbour}, $at{prism}) },
    "debug another process" => sub { call("ptrace", 0x4206, $at{neighbour} + 0, 0, 0) != -1 },
    "read another process's memory" => sub {
        my $found = "\0" x length $secret;
        my $here = pack "JJ", unpack("J", pack "P", $found), length $secret;
        my $there = pack "JJ", $at{address}, length $secret;
        call("process_vm_readv", $at{neighbour} + 0, $here, 1, $there, 1, 0) == length $secret && $found eq $secret;
    },
    "take an open file of another process" => sub {
        my $other = call("pidfd_open", $at{neighbour} + 0, 0);
        my $taken = $other == -1 ? -1 : call("pidfd_getfd", $other, $at{handle} + 0, 0);
        $taken != -1 && slurp("/proc/self/fd/$taken") eq $secret;
    },
    "read a key of the session" => sub {
        my ($kind, $name, $found) = ("user", "prism-ways", "\0" x length $secret);
        my $key = call("keyctl", 10, -3, $kind, $name, 0);
        $key != -1 && call("keyctl", 11, $key, $found, length $secret) != -1 && $found eq $secret;
    },
    "open a device" => sub {
        my @disks = glob "/dev/sd? /dev/vd? /dev/nvme?n? /dev/loop? /dev/dri/* /dev/input/event*";
        any(
            sub { sysopen my $device, $_[0], O_RDONLY | O_NONBLOCK },
            @disks, map { "/dev/$_" } qw(kmsg kvm fuse net/tun autofs mem vhost-vsock vsock uinput snd/timer rtc0),
        );
    },
    "write to another terminal" => sub { amend($at{terminal}) },
    # The own one, and another that becomes it.
    "type into a terminal" => sub {
        my $key = "x";
        return 1 if -t STDIN && ioctl STDIN, 0x5412, $key;
        POSIX::setsid();
        sysopen my $terminal, $at{typed}, O_RDWR or return 0;
        ioctl $terminal, 0x5412, $key;
    },
    "shared memory in /dev/shm" => sub { slurp($at{segment}) eq $secret || amend($at{segment}) },
    "shared memory and queues of System V" => sub {
        my $found = "";
        shmread($at{memory}, $found, 0, length $secret) && $found eq $secret
            or msgsnd $at{queue}, pack("l! a*", 1, "evil"), 04000;
    },
    "gain rights from a setuid program" => sub {
        any(\&gains, $at{setuid}, qw(/usr/bin/su /usr/bin/mount /usr/bin/passwd /usr/bin/sudo /bin/su));
    },
    "make a user namespace" => sub { call("unshare", 0x1000_0000) != -1 },
    # In a namespace of its own, where that can be had.
    "mount" => sub {
        my ($none, $kind, $root, $place) = ("none", "tmpfs", "/", "$project/mount");
        my $is_apart = call("unshare", 0x0002_0000) != -1 || call("unshare", 0x1002_0000) != -1;
        call("mount", $none, $root, $none, 0x44000, 0) if $is_apart;
        call("mount", $none, $place, $kind, 0, 0) != -1;
    },
    "kill or stop another process" => sub { (kill STOP => $at{stopped}) + (kill KILL => $at{killed}) },
    "limit or slow another process" => sub {
        my ($few, $first) = (pack("QQ", 10, 10), pack "Q", 1);
        my $pid = $at{limited} + 0;
        any(
            sub { $_[0]->() },
            sub { call("prlimit64", $pid, 7, $few, 0) != -1 },
            sub { setpriority 0, $pid, 19 },
            sub { call("sched_setaffinity", $pid, 8, $first) != -1 },
        );
    },
    "change the mode of a file" => sub { chmod 0777, "$home/documents/letter" },
    "link a file of the home folder" => sub { link "$home/documents/letter", "$project/hard" },
    "use an open file that was inherited" => sub { scalar @inherited },
    "find secrets and sockets in variables" => sub {
        my @names = qw(SSH_AUTH_SOCK DBUS_SESSION_BUS_ADDRESS DISPLAY WAYLAND_DISPLAY XDG_RUNTIME_DIR DOCKER_HOST MCP_TOKEN
            PRISM_HOME);
        any(sub { exists $ENV{$_[0]} }, @names) || any(sub { $_[0] =~ /\Q$secret/ }, values %ENV);
    },
    "connect to the screen" => sub { any(\&reaches, "$home/run/wayland-0", "\0$at{screen}") },
    "write hooks and tasks that are there" => sub {
        any(sub { amend("$project/$_[0]") }, ".git/hooks/post-commit", ".git/config", ".vscode/tasks.json");
    },
    # No session, no parent, no variables, no streams.
    "leave something running" => sub {
        pipe my $out, my $in or return 0;
        if (fork) {
            close $in;
            sysread $out, my $said, 9;
            return $said;
        }
        POSIX::setsid();
        fork and POSIX::_exit(0);
        # It has begun when nothing is left of what it was: until it is another program, it still shows the variables it had.
        %ENV = ();
        open STDOUT, ">&", $in;
        POSIX::close($_) for 0, 2;
        my $survivor = 'chdir $ARGV[0] and syswrite STDOUT, "begun"; close STDOUT; sleep 3600';
        exec "/usr/bin/perl", "-e", $survivor, "$project/den";
    },
);

$| = 1;
for my $way (0 .. $#ways / 2) {
    my ($name, $try) = @ways[2 * $way, 2 * $way + 1];
    printf "%d %s: %s\n", $way + 1, $name, outcome($try);
}
print "end\n";

# Each in a process of its own: some ways end whoever goes them.
sub outcome {
    my ($way) = @_;
    pipe my $out, my $in or die;
    my $pid = fork;
    if (!$pid) {
        alarm 10;
        open STDERR, ">", "/dev/null";
        my $led = eval { no warnings; $way->() };
        syswrite $in, !$led ? "held" : $led eq "begun" ? "begun" : "OUT";
        POSIX::_exit(0);
    }
    close $in;
    waitpid $pid, 0;
    sysread $out, my $said, 9;
    return $said || "held";
}

# The arguments themselves, as the kernel writes to some.
sub call {
    my $number = $number_of->{ +shift };
    return syscall $number, @_;
}

sub any {
    my ($try, @all) = @_;
    for my $one (@all) {
        return 1 if $try->($one);
    }
    return 0;
}

sub slurp {
    open my $file, "<", $_[0] or return "";
    sysread $file, my $text, 1 << 16;
    return $text // "";
}

# Adds to a file that is there. What is made anew may be anywhere.
sub amend {
    sysopen my $file, $_[0], O_WRONLY | O_APPEND | O_NOCTTY or return 0;
    return syswrite $file, "evil\n";
}

sub reaches {
    socket my $socket, AF_UNIX, SOCK_STREAM, 0 or return 0;
    return connect $socket, pack_sockaddr_un($_[0]);
}

sub dials {
    socket my $socket, AF_INET, SOCK_STREAM, 0 or return 0;
    return connect $socket, pack_sockaddr_in($_[0], inet_aton("127.0.0.1"));
}

sub shows {
    my ($pid) = @_;
    return 1 if slurp("/proc/$pid/environ") =~ /\Q$secret/;
    return 1 if slurp("/proc/$pid/root$home/.ssh/id_ed25519") eq $secret || -e "/proc/$pid/cwd/documents/letter";
    open my $memory, "<", "/proc/$at{neighbour}/mem" or return 0;
    sysseek $memory, $at{address}, 0;
    sysread $memory, my $found, length $secret;
    return ($found // "") eq $secret;
}

# Starts a program whose streams are full, so that it waits at its first word, and looks who it is by then.
sub gains {
    my ($program) = @_;
    return 0 unless $program && -x $program;
    pipe my $out, my $in or return 0;
    fcntl $in, F_SETFL, O_NONBLOCK;
    1 while syswrite $in, "x" x 4096;
    fcntl $in, F_SETFL, 0;
    my $pid = fork;
    if (!$pid) {
        open STDOUT, ">&", $in;
        open STDERR, ">&", $in;
        { exec { $program } $program, "--help" }
        POSIX::_exit(1);
    }
    my ($name) = $program =~ m{([^/]{1,15})[^/]*$};
    my $has_gained = 0;
    for (1 .. 500) {
        my $status = slurp("/proc/$pid/status");
        if ($status =~ /^Name:\t\Q$name\E$/m && $status =~ /^Uid:\t(\d+)\t(\d+)/m) {
            $has_gained = $1 != $2;
            last;
        }
        last if waitpid $pid, POSIX::WNOHANG();
        select undef, undef, undef, 0.01;
    }
    kill KILL => $pid;
    waitpid $pid, 0;
    return $has_gained;
}
