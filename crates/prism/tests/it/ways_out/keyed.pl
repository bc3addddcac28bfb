# Runs a command in a session of keys in which there is one.
use strict;
use warnings;
use POSIX ();

my ($secret, @command) = @ARGV;
my %calls = (x86_64 => [248, 250], aarch64 => [217, 219]);
my ($add_key, $keyctl) = @{ $calls{ (POSIX::uname())[4] } or die "no calls are known of this machine\n" };
my ($kind, $name) = ("user", "prism-ways");
syscall $keyctl, 1, 0;
syscall $add_key, $kind, $name, $secret, length $secret, -3;
exec { $command[0] } @command;
