// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"github.com/nixl-otel/nixl-otel/bridge/session"
	"github.com/nixl-otel/nixl-otel/cmd/nixlring/internal/ringfile"
	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/ringbuf"
)

// TestScripts runs the scripts in testdata/script. Each contains its input, the commands, and their whole
// output. go test -run TestScripts -update writes the actual output to the scripts.
//
// A script runs its commands with "exec transcript FILE", which runs the commands in the lines of FILE that begin
// with "$ ", and prints them with their output. Lines of standard error begin with "2> ".
func TestScripts(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	if ringfile.OpenForWriting(file) == diagnose.Unknown {
		t.Skip("the file system doesn't support leases")
	}
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"), UpdateScripts: *update,
		Setup: func(e *testscript.Env) error {
			e.Setenv("TZ", "UTC")
			return nil
		},
		Condition: func(string) (bool, error) { return os.Geteuid() == 0, nil }, // root is the only one
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"age": setAge, "consume": consumeRing, "fixture": copyFixture, "header": makeHeader, "procfs": makeProcfs, "ring": makeRing, "session": openSession, "store": makeStore, "truncate": truncate,
		},
	})
}

func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"nixlring": scripted, "transcript": transcript})
}

type leakChecked struct{ *testing.M }

func (m leakChecked) Run() int {
	code := m.M.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// scripted is the program in scripts. PROC is the mount point of procfs, and NOW a constant time; files that are
// newer have an age of 0.
func scripted() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(runScripted(ctx, os.Stdout, os.Stderr, os.LookupEnv, os.Args[1:]))
}

func runScripted(ctx context.Context, out, errs io.Writer, env func(string) (string, bool), args []string) int {
	// A minute ago, so that the files of a script are 0 s old, however busy the machine is.
	now := func() time.Time { return time.Now().Add(-time.Minute) }
	w := world{in: os.Stdin, out: normalizer{out}, err: normalizer{errs}, env: env, now: now, proc: "/proc"}
	if proc, ok := env("PROC"); ok {
		w.proc = proc
	}
	if text, ok := env("NOW"); ok {
		now, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			panic(err)
		}
		w.now = func() time.Time { return now }
	}
	return run(ctx, w, args)
}

// transcript runs the commands in a file.
func transcript() {
	content, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex // for commands that write both streams at once
	for line := range strings.Lines(string(content)) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		words := strings.Fields(command)
		for i := range words {
			words[i] = unquote(words[i])
		}
		program := slices.Index(words, "nixlring")
		env := func(name string) (string, bool) {
			for _, pair := range words[:program] {
				if key, value, _ := strings.Cut(pair, "="); key == name {
					return value, true
				}
			}
			return os.LookupEnv(name)
		}
		fmt.Printf("$ %s", command)
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // for a command that should end, but doesn't
		code := runScripted(ctx, &stream{mu: &mu}, &stream{mu: &mu, prefix: "2> "}, env, words[program+1:])
		cancel()
		if code != exitOK {
			fmt.Printf("[exit code %d]\n", code)
		}
	}
}

// unquote replaces sequences such as \n and \xff.
func unquote(word string) string {
	if word == `""` {
		return ""
	}
	if text, err := strconv.Unquote(`"` + word + `"`); err == nil {
		return text
	}
	return word
}

// stream writes lines to standard output, with a prefix.
type stream struct {
	mu     *sync.Mutex
	prefix string
}

func (s *stream) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for line := range bytes.Lines(b) {
		fmt.Printf("%s%s", s.prefix, line)
	}
	return len(b), nil
}

// normalizer replaces what differs between machines and runs.
type normalizer struct{ out io.Writer }

var variable = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`inode \d+ on device \w+:\w+`), "inode 42 on device fe:01"},
	{regexp.MustCompile(`"inode": \d+`), `"inode": 42`},
	{regexp.MustCompile(`"device": "[0-9a-f]+:[0-9a-f]+"`), `"device": "fe:01"`},
	{regexp.MustCompile(`"owner_uid": \d+`), `"owner_uid": 1000`},
	{regexp.MustCompile(`"owner_gid": \d+`), `"owner_gid": 1000`},
	{regexp.MustCompile(`"modified": "[^"]*"`), `"modified": "2026-11-20T21:56:15Z"`},
	{regexp.MustCompile(` in [0-9.]+m?s\n`), " in 1s\n"},
	{regexp.MustCompile(`"seconds": [0-9.]+`), `"seconds": 0.1`},
	{regexp.MustCompile(`[0-9.]+ s of the recording`), "0.1 s of the recording"},
	{regexp.MustCompile(`uid \d+`), "uid 1000"},
	{regexp.MustCompile(`gid \d+`), "gid 1000"},
	{regexp.MustCompile(`process \d+ \(nixlring\.test\)`), "process 4711 (agent)"},
}

// owner is the column of uids in the table of nixlring ls.
var owner = regexp.MustCompile(`(?:no|yes|\?|-) +\d+  `)

func (n normalizer) Write(b []byte) (int, error) {
	text := owner.ReplaceAllStringFunc(string(b), func(s string) string {
		use, _, _ := strings.Cut(s, " ")
		return fmt.Sprintf("%s%*s", use, len(s)-len(use), "1000  ")
	})
	if work := os.Getenv("WORK"); work != "" {
		text = strings.ReplaceAll(text, work, "$WORK")
	}
	for _, v := range variable {
		text = v.pattern.ReplaceAllString(text, v.with)
	}
	_, err := io.WriteString(n.out, text)
	return len(b), err
}

// makeRing creates a ring. Its agent has exited, unless -open is the first argument:
//
//	ring [-open] PATH LAYOUT CAPACITY [TYPE=VALUE[xCOUNT]...]
func makeRing(ts *testscript.TestScript, _ bool, args []string) {
	open := args[0] == "-open"
	if open {
		args = args[1:]
	}
	path := ts.MkAbs(unquote(args[0]))
	layout, err := ringbuf.ParseLayout(args[1])
	ts.Check(err)
	capacity, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Check(os.MkdirAll(filepath.Dir(path), 0o755))
	w, err := ringbuf.Create(path, layout, capacity)
	ts.Check(err)
	ts.Check(os.Chmod(path, 0o644))
	micros := uint64(1_736_951_425_123_456)
	for _, arg := range args[3:] {
		name, rest, _ := strings.Cut(arg, "=")
		number, count, repeated := strings.Cut(rest, "x")
		value, err := strconv.ParseUint(number, 10, 64)
		ts.Check(err)
		times := 1
		if repeated {
			times, err = strconv.Atoi(count)
			ts.Check(err)
		}
		for range times {
			e := newEvent(ts, layout, name, value)
			e.TimestampMicros = micros
			ts.Check(w.Push(e))
			micros += 1111
		}
	}
	if open {
		ts.Defer(func() { _ = w.Close() })
		return
	}
	ts.Check(w.Close())
}

func newEvent(ts *testscript.TestScript, l ringbuf.Layout, name string, value uint64) ringbuf.Event {
	for typ := range ringbuf.Type(99) {
		if ringbuf.V4.TypeName(typ) == name {
			return ringbuf.NewEvent(typ, value)
		}
	}
	if !l.Named() {
		ts.Fatalf("unknown type of event %q", name)
	}
	return ringbuf.NewNamedEvent(ringbuf.CategoryCustom, unquote(name), value)
}

// makeHeader creates an empty ring with a header that may be invalid: header PATH VERSION CAPACITY
func makeHeader(ts *testscript.TestScript, _ bool, args []string) {
	version, err := strconv.Atoi(args[1])
	ts.Check(err)
	capacity, err := strconv.Atoi(args[2])
	ts.Check(err)
	header := ringtest.NewHeader(int32(version), uint64(capacity))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), append(header.Bytes(), make([]byte, 16*capacity)...), 0o600))
	ts.Check(os.Chmod(ts.MkAbs(args[0]), 0o644))
}

// consumeRing locks a ring as a consumer does: consume PATH.
func consumeRing(ts *testscript.TestScript, _ bool, args []string) {
	r, err := ringbuf.OpenReader(ts.MkAbs(args[0]), ringbuf.Consume)
	ts.Check(err)
	ts.Defer(func() { _ = r.Close() })
}

// fixtures has files that NIXL wrote.
const fixtures = "../../testdata"

// copyFixture copies a ring that NIXL wrote: fixture NAME PATH.
func copyFixture(ts *testscript.TestScript, _ bool, args []string) {
	content, err := os.ReadFile(filepath.Join(fixtures, "rings", args[0]+".ring"))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), content, 0o600))
	ts.Check(os.Chmod(ts.MkAbs(args[1]), 0o644)) // whatever the umask
}

// makeStore creates the store of a process, which has exited, unless -open is the first argument:
//
//	store [-open] DIR
func makeStore(ts *testscript.TestScript, _ bool, args []string) {
	open := args[0] == "-open"
	if open {
		args = args[1:]
	}
	path := filepath.Join(ts.MkAbs(args[0]), storetest.Real)
	content, err := os.ReadFile(filepath.Join(fixtures, "stores", storetest.Real))
	ts.Check(err)
	ts.Check(os.WriteFile(path, content, 0o600))
	if open {
		f, err := os.Open(path)
		ts.Check(err)
		ts.Defer(func() { _ = f.Close() })
		ts.Check(files.Lock(f))
	}
}

// openSession starts a session of split inference: session DIR.
func openSession(ts *testscript.TestScript, _ bool, args []string) {
	s, err := session.Open(ts.MkAbs(args[0]), session.WithName("run"))
	ts.Check(err)
	ts.Defer(func() { _ = s.Close() })
}

// setAge sets how long ago files were modified: age DURATION FILE...
func setAge(ts *testscript.TestScript, _ bool, args []string) {
	d, err := time.ParseDuration(args[0])
	ts.Check(err)
	for _, name := range args[1:] {
		at := time.Now().Add(-d)
		ts.Check(os.Chtimes(ts.MkAbs(name), at, at))
	}
}

// truncate sets the size of a file, or reduces it if the size is negative: truncate SIZE FILE
func truncate(ts *testscript.TestScript, _ bool, args []string) {
	size, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	if size < 0 {
		info, err := os.Stat(ts.MkAbs(args[1]))
		ts.Check(err)
		size += info.Size()
	}
	ts.Check(os.Truncate(ts.MkAbs(args[1]), size))
}

// makeProcfs creates a procfs in which processes have a ring mapped:
//
//	procfs DIR RING host|container [PID[,lock][,read][,hidden]...]
//
// A process with "lock" holds the consumer lock, one with "read" has it mapped for reading only, and the mappings
// of one with "hidden" can't be read. Process 9998 has a private copy of it mapped, and process
// 9999 another file.
func makeProcfs(ts *testscript.TestScript, _ bool, args []string) {
	proc, ring := ts.MkAbs(args[0]), ts.MkAbs(args[1])
	namespace := map[string]string{"host": "pid:[4026531836]", "container": "pid:[4026532561]"}[args[2]]
	info, err := os.Lstat(ring)
	ts.Check(err)
	id := files.IDOf(info)
	file := fmt.Sprintf("%s:%d", ringfile.Device(id.Dev), id.Ino)
	ts.Check(os.RemoveAll(proc))
	ts.Check(os.MkdirAll(filepath.Join(proc, "self", "ns"), 0o755))
	ts.Check(os.Symlink(namespace, filepath.Join(proc, "self", "ns", "pid")))
	write := func(path, content string) {
		ts.Check(os.MkdirAll(filepath.Dir(filepath.Join(proc, path)), 0o755))
		ts.Check(os.WriteFile(filepath.Join(proc, path), []byte(content), 0o600))
	}
	locks := "1: POSIX  ADVISORY  READ 77 " + file + " 0 EOF\n"
	mapping := func(perms, device string, inode uint64, path string) string {
		return fmt.Sprintf("00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/dbus-daemon\n"+
			"7f1c00000000-7f1c00011000 %s 00000000 %s %d %s\n7ffc0000-7ffd0000 rw-p 00000000 00:00 0 [stack]\n", perms, device, inode, path)
	}
	for _, arg := range args[3:] {
		pid, how, _ := strings.Cut(arg, ",")
		write(pid+"/comm", "prog"+pid+"\n")
		perms := "rw-s"
		if strings.Contains(how, "read") {
			perms = "r--s"
		}
		if strings.Contains(how, "lock") {
			locks += "2: FLOCK  ADVISORY  WRITE " + pid + " " + file + " 0 EOF\n"
		}
		if strings.Contains(how, "hidden") {
			ts.Check(os.Mkdir(filepath.Join(proc, pid, "maps"), 0o755)) // reading it fails
			continue
		}
		write(pid+"/maps", mapping(perms, ringfile.Device(id.Dev), id.Ino, ring))
	}
	write("9998/maps", mapping("rw-p", ringfile.Device(id.Dev), id.Ino, ring))
	write("9999/comm", "other\n")
	write("9999/maps", mapping("rw-s", ringfile.Device(id.Dev), id.Ino+1<<32, ring+".other"))
	write("locks", locks+"3: FLOCK\n4: -> FLOCK  ADVISORY  WRITE x y z\n5: FLOCK  ADVISORY  WRITE 1 zz:1 0 EOF\n")
}
