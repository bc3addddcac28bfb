# What a person has running: it keeps a secret in its memory, its environment and an open file, has two terminals, memory that it
# shares, a queue, and three processes that can be killed, stopped and limited. It says where each is, and lives until its
# stdin ends.
use strict;
use warnings;
use Fcntl;
use POSIX ();

my ($secret) = @ARGV;
my %calls = (x86_64 => 157, aarch64 => 167);
my $prctl = $calls{ (POSIX::uname())[4] } or die "no calls are known of this machine\n";
# Where the machine allows it to its parents only, everybody may look into this one: it is the fence that is tried.
syscall $prctl, 0x59616d61, -1, 0, 0, 0;

# The first of a machine has the number 0.
my $memory = shmget(0, 4096, 01600) // die "no shared memory: $!";
shmwrite $memory, $secret, 0, length $secret;
my $queue = msgget(0, 01600) // die "no queue: $!";
END { shmctl $memory, 0, 0; msgctl $queue, 0, 0 }

open my $file, "<", ".ssh/id_ed25519" or die "no secret: $!";
my ($first, $second) = map { terminal() } 1 .. 2;
my @others = map { other() } 1 .. 3;
print "address=", unpack("J", pack "P", $secret), "\n";
print "handle=", fileno $file, "\nmemory=$memory\nqueue=$queue\nterminal=$first->[1]\ntyped=$second->[1]\n";
print "killed=$others[0]\nstopped=$others[1]\nlimited=$others[2]\nend\n";
open STDOUT, ">", "/dev/null";
1 while <STDIN>;
kill KILL => @others;

sub terminal {
    sysopen my $keyboard, "/dev/ptmx", O_RDWR | O_NOCTTY or die "no terminal: $!";
    my ($unlocked, $number) = (pack("i", 0), pack "i", 0);
    ioctl $keyboard, 0x40045431, $unlocked;
    ioctl $keyboard, 0x80045430, $number;
    return [$keyboard, "/dev/pts/" . unpack "i", $number];
}

sub other {
    my $pid = fork;
    return $pid if $pid;
    # With its parent.
    syscall $prctl, 1, 9, 0, 0, 0;
    sleep 3600;
    POSIX::_exit(0);
}
