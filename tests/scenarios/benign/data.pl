#!/usr/bin/perl
# SPDX-License-Identifier: Apache-2.0
# A nightly job: records through sqlite3, workers by fork, a report through a pipe.
use strict;
use warnings;
open(my $sql, '|-', 'sqlite3', 'db') or die "sqlite3: $!";
print $sql "create table t(day int, n int);\nbegin;\n";
print $sql "insert into t values(" . ($_ % 30) . ", " . ($_ * 7 % 101) . ");\n" for 1 .. 3000;
print $sql "commit;\ncreate index i on t(day);\nvacuum;\n";
close($sql) or die "sqlite3 ended with $?";
my @kids;
for my $k (0 .. 3) {
	my $pid = fork() // die "fork: $!";
	if (!$pid) {
		my $sum = qx(sqlite3 db 'select sum(n) from t where day % 4 = $k');
		open(my $out, '>', "part.$k") or die "part.$k: $!";
		print $out $sum;
		close($out);
		exit 0;
	}
	push @kids, $pid;
}
waitpid($_, 0) for @kids;
my $all = 0;
for my $k (0 .. 3) {
	open(my $in, '<', "part.$k") or die "part.$k: $!";
	$all += <$in>;
	unlink "part.$k";
}
open(my $sort, '-|', "sqlite3 -separator ' ' db 'select day, sum(n) from t group by day' | sort -k2n | tail -1") or die;
my $top = <$sort>;
close($sort);
chomp(my $total = qx(sqlite3 db 'select sum(n) from t'));
die "$all is not $total" if $all != $total;
print "total $total, top $top";
