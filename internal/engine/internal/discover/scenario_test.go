// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux && (amd64 || arm64)

package discover

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/engine/internal/drain"
	"github.com/nixl-otel/nixl-otel/internal/files"
	"github.com/nixl-otel/nixl-otel/internal/lab/must"
	"github.com/nixl-otel/nixl-otel/internal/lab/ringtest"
	"github.com/nixl-otel/nixl-otel/internal/lab/scripttest"
	"github.com/nixl-otel/nixl-otel/internal/lab/storetest"
	"github.com/nixl-otel/nixl-otel/internal/notice"
	"github.com/nixl-otel/nixl-otel/internal/tally"
	"github.com/nixl-otel/nixl-otel/ringbuf"
	"github.com/nixl-otel/nixl-otel/semconv"
)

// scenario runs a script for a directory. Each line has commands, separated by semicolons, and after => what is
// seen after two more rounds: the events of each agent, the stores, the number of open files, the refused files with
// their reasons, the number of files that are ignored, and the log.
type scenario struct {
	*fixture
	change    options // of the directory
	directory *Directory
	rings     map[string]*ringbuf.Writer   // by name, also of removed ones
	stores    map[string]*storetest.Writer // by process
	files     map[string]string            // names that scripts have for stores
	locks     map[string]*ringbuf.Reader
	denied    string // a subdirectory that can't be opened
}

func runScenario(t *testing.T, script string) {
	t.Helper()
	s := &scenario{
		fixture: newFixture(t), rings: make(map[string]*ringbuf.Writer), locks: make(map[string]*ringbuf.Reader),
		stores: make(map[string]*storetest.Writer), files: map[string]string{"real": storetest.Real},
	}
	s.change.Include = []string{"**"}
	scripttest.Run(t, script, s.run, s.see)
}

// dir returns the directory under test, which is created after the commands that configure it.
func (s *scenario) dir() *Directory {
	if s.directory == nil {
		s.directory = s.fixture.directory(func(o *options) {
			o.Observe, o.AllowedUIDs, o.Stores = s.change.Observe, s.change.AllowedUIDs, s.change.Stores
			o.Include = s.change.Include
			o.OpenDir = func(name string) (*files.Dir, error) {
				if name == s.denied {
					return nil, &os.PathError{Op: "open", Path: s.path(name), Err: syscall.EACCES}
				}
				return files.OpenDir(s.fixture.dir, name)
			}
		})
	}
	return s.directory
}

func (s *scenario) run(command []string) {
	s.t.Helper()
	arg := func(i int) string { return append(command, "", "", "")[i] }
	number := func(i, otherwise int) int {
		if n, err := strconv.Atoi(arg(i)); err == nil {
			return n
		}
		return otherwise
	}
	name := arg(1)
	path := s.path(cmp.Or(s.files[name], name))
	switch arg(0) {
	case "observe": // configuration
		s.change.Observe = true
	case "limit":
		s.newOwner(number(1, 0))
	case "others": // only rings of another user are opened
		s.change.AllowedUIDs = []uint32{uint32(os.Geteuid()) + 1}
	case "own": // only files of this user are opened
		s.change.AllowedUIDs = []uint32{uint32(os.Geteuid())}
	case "stores": // are read; their limit
		s.change.Stores = &Stores{Limit: number(1, 1000), StaleAfter: time.Minute, Histograms: true}
		s.advance(time.Since(s.clock()))
	case "only": // agents that are included
		s.change.Include = []string{name}
	case "ring": // an agent starts: name, layout, slots
		layout, err := ringbuf.ParseLayout(cmp.Or(arg(2), "v4"))
		must.OK(s.t, err)
		s.rings[name] = s.ring(name, layout, number(3, 16))
	case "push":
		push(s.t, s.rings[name], number(2, 1))
	case "store": // a process starts: its PID and agent
		s.stores[name] = storetest.Create(s.t, s.fixture.dir, storetest.Config{PID: int64(number(1, 0)), Agent: arg(2), Started: s.clock()})
		s.files[name] = s.stores[name].Name()
	case "count":
		s.stores[name].Count(storetest.TxBytes, uint64(number(2, 1)))
	case "idle": // for an hour; or its last update was in the future
		s.stores[name].Updated(storetest.Uptime(s.t) + time.Duration(number(2, -1))*time.Hour)
	case "end": // the process of a store exits
		s.stores[name].Exit()
	case "real": // the store of a real agent, or its first bytes
		b := storetest.Bytes(s.t)
		must.OK(s.t, os.WriteFile(path, b[:number(2, len(b))], 0o600))
	case "chown":
		if os.Geteuid() != 0 {
			s.t.Skip("needs root, to give a file to another user")
		}
		must.OK(s.t, os.Chown(path, number(2, 0), -1))
	case "exit":
		must.OK(s.t, s.rings[name].Close())
	case "lock": // another consumer opens the ring
		r, err := ringbuf.OpenReader(path, ringbuf.Consume)
		must.OK(s.t, err)
		s.t.Cleanup(func() { _ = r.Close() })
		s.locks[name] = r
	case "unlock":
		must.OK(s.t, s.locks[name].Close())
	case "version":
		ringtest.Edit(s.t, path, func(h *ringtest.Header) { h.Version = int32(number(2, 0)) })
	case "claim": // the header claims events
		ringtest.Edit(s.t, path, func(h *ringtest.Header) { h.WritePos = uint64(number(2, 0)) })
	case "truncate":
		must.OK(s.t, os.Truncate(path, int64(number(2, 0))))
	case "file": // name, size
		touch(s.t, path, strings.Repeat("text", number(2, 0)/4))
	case "podman": // podman's locks have 0 where rings have their version
		must.OK(s.t, os.WriteFile(path, append([]byte{0x87, 0xd1, 0, 0, 2, 0, 0, 0}, make([]byte, 4096)...), 0o600))
	case "fifo":
		must.OK(s.t, syscall.Mkfifo(path, 0o600))
	case "symlink":
		must.OK(s.t, os.Symlink(s.path(arg(2)), path))
	case "link":
		must.OK(s.t, os.Link(path, s.path(arg(2))))
	case "mkdir":
		must.OK(s.t, os.MkdirAll(path, 0o700))
	case "mv":
		must.OK(s.t, os.Rename(path, s.path(arg(2))))
		s.rings[arg(2)] = s.rings[name]
	case "rm":
		must.OK(s.t, os.RemoveAll(path))
	case "deny":
		s.denied = name
	case "wait":
		d, err := time.ParseDuration(name)
		must.OK(s.t, err)
		s.advance(d)
	case "round":
		s.round(s.dir())
	case "look":
		s.dir().poll()
	case "check":
		s.dir().checkPath(s.dir().record(name))
	case "part": // a walk that ends before it has seen a file
		s.dir().walks++
		s.dir().sweep(false)
	case "retire":
		s.retire(s.dir())
	default:
		s.t.Fatalf("unknown command %q", command)
	}
}

var logged = map[notice.Kind]string{
	notice.NotRing: "not ring", notice.RingRefused: "refused", notice.RingLimit: "limit",
	notice.DirectoryFound: "found", notice.MPStoreRefused: "store refused", notice.BudgetReached: "budget",
}

func (s *scenario) see() string {
	s.t.Helper()
	s.round(s.dir())
	var agents, refused, log []string
	for agent, n := range s.round(s.dir()) {
		agents = append(agents, fmt.Sprint(agent, " ", n))
	}
	state := s.dir().state()
	if s.change.Stores != nil {
		for _, store := range s.dir().readAll() {
			agents = append(agents, "store "+describe(store))
		}
	}
	for path, r := range state.Refused {
		refused = append(refused, fmt.Sprintf("refused %s (%s)", s.name(path), r.Reason))
	}
	for range state.Missing {
		refused = append(refused, "missing")
	}
	for _, n := range s.notices {
		if kind := logged[n.Kind]; kind != "" {
			log = append(log, "log "+kind+" "+s.name(n.Path))
		}
		if why, _, _ := strings.Cut(n.Text, "; "); n.Kind == notice.DirectoryMissing || n.Kind == notice.PatternsUnmatched {
			log = append(log, strings.TrimPrefix(why, "telemetry directory can't be read "))
		}
	}
	s.notices = nil
	for _, list := range [][]string{agents, refused, log} {
		slices.Sort(list)
	}
	if state.Open > 0 {
		agents = append(agents, fmt.Sprint(state.Open, " open"))
	}
	if n := len(s.dir().records) - state.Open - len(state.Refused); n != 0 {
		refused = append(refused, fmt.Sprint(n, " ignored"))
	}
	return strings.Join(slices.Concat(agents, refused, log), ", ")
}

// name returns the name that scripts have for a path.
func (s *scenario) name(path string) string {
	rel, err := filepath.Rel(s.fixture.dir, path)
	must.OK(s.t, err)
	for name, file := range s.files {
		if file == rel {
			return name
		}
	}
	return rel
}

// describe describes the snapshot of a store: PID, whether its process runs, and bytes.
func describe(s drain.Snapshot) string {
	pid, _ := s.Process.Value(semconv.ProcessPID)
	up := map[drain.Up]string{drain.UpYes: "runs", drain.UpNo: "exited"}[s.Up]
	return fmt.Sprint(pid.AsInt64(), " ", up, " ", s.Totals.Size(tally.Transmit).Total().Int64())
}

func TestRestartsAndRemovals(t *testing.T) {
	for name, script := range map[string]string{
		"rings of all layouts are opened": `
			ring a v1; push a 1; ring b v2; push b 2; ring c v3; push c 3; ring d v4; push d 4 => a 1, b 2, c 3, d 4, 4 open`,
		"a restarted ring is opened again": `
			ring a v4 16; push a 5                      => a 5, 1 open
			wait 1s; ring a v4 16; round; push a 3      => a 8, 1 open
			wait 1s; ring a v4 8; round; push a 3       => a 11, 1 open
			wait 1s; ring a v4 64; round; push a 30     => a 41, 1 open
			wait 1s; ring a v1 64; round; push a 3      => a 44, 1 open
			wait 1s; ring a v4 64; round; push a 3      => a 47, 1 open
			wait 1s; ring a v3 64; round; push a 3      => a 50, 1 open
			wait 1s; ring a v2 64; round; push a 3      => a 53, 1 open`,
		"a truncated ring is opened again": `
			ring a v4 4096                              => a 0, 1 open
			push a 4000; truncate a; round; ring a v4 8; push a 2 => a 2, 1 open`,
		"the agent of a removed file may continue to write to it": `
			ring a                                      => a 0, 1 open
			rm a                                        => a 0, 1 open
			push a 4                                    => a 4, 1 open
			exit a; retire                              =>`,
		"a ring that replaces another is opened, and the events of both are counted": `
			ring a                                      => a 0, 1 open
			push a 4; mv a ../away; ring a; push a 2    => a 6, 1 open`,
		"the ring of an exited agent is opened again when the agent restarts": `
			ring a; push a 1                            => a 1, 1 open
			exit a; retire                              => 1 ignored
			wait 1h                                     => 1 ignored
			ring a; push a 3                            => a 3, 1 open`,
		"an exited agent with events is drained": `
			ring a; push a 5; exit a                    => a 5, 1 open`,
		"a ring beyond the limit is refused until another is retired": `
			limit 2; ring a; ring b                     => a 0, b 0, 2 open
			ring c                                      => a 0, b 0, 2 open, refused c (limit), log limit .
			exit a; round; wait 30s                     => b 0, c 0, 2 open, 1 ignored`,
		"rings of exited agents, which NIXL never removes, don't use up the limit": `
			limit 1; ring a; exit a; ring b; exit b; ring c; exit c; ring d; exit d; ring live; push live 7 => live 7, 1 open, 4 ignored`,
		"a file that isn't a ring is no ring beyond the limit": `
			limit 1; file notes 100; ring a             => a 0, 1 open, 1 ignored, log not ring notes`,
		"patterns that include no file are reported once": `
			only decode-.*; ring decode-0; ring b; ring a.log => include (decode-.*) matches none of the 3 files in this directory
			wait 1h                                     =>`,
		"patterns that select one file, and patterns without files": `
			only a*; real real                          =>
			ring a; ring b.log                          => a 0, 1 open`,
		"subdirectories are searched up to a depth": `
			mkdir DEEP/d; ring DEEP/a; ring DEEP/d/b    => a 0, 1 open`,
		"a missing directory is reported until it is created": `
			rm .                                        => missing, because it doesn't exist
			mkdir .; ring a; push a 1                   => a 1, 1 open, log found .
			rm .; wait 1h                               => a 1, 1 open, missing, because it doesn't exist
			mkdir .; ring a; push a 1                   => a 2, 1 open, log found .`,
		"an unreadable directory is reported when the reason changes": `
			rm .                                        => missing, because it doesn't exist
			file .                                      => missing, because it is another kind of file
			rm .; wait 1m                               => missing, because it doesn't exist
			mkdir .; deny .                             => missing, because this process has no permission to list it
			deny none                                   => log found .`,
		"rings of a directory that is missing for a moment stay open": `
			ring a; push a 1                            => a 1, 1 open
			mv . ../away                                => a 1, 1 open, missing, because it doesn't exist
			mv ../away .; push a 1                      => a 2, 1 open, log found .`,
		"rings that a walk hasn't reached stay open": `
			ring a; push a 1                            => a 1, 1 open
			part; push a 1                              => a 2, 1 open`,
	} {
		t.Run(name, func(t *testing.T) {
			runScenario(t, strings.ReplaceAll(script, "DEEP", strings.Repeat("d/", maxDepth-2)+"d"))
		})
	}
}

func TestRenames(t *testing.T) {
	const renamed = `
			ring a; push a 1                            => a 1, 1 open
			mv a b; %s; push b 2                  => a 3, 1 open, 1 ignored`
	for name, script := range map[string]string{
		"a renamed ring keeps its agent, checked under its old name first": fmt.Sprintf(renamed, "check a"),
		"a renamed ring keeps its agent, checked under its new name first": fmt.Sprintf(renamed, "check b"),
		"an observed ring keeps its agent, checked under its old name":     "observe\n" + fmt.Sprintf(renamed, "check a"),
		"an observed ring keeps its agent, checked under its new name":     "observe\n" + fmt.Sprintf(renamed, "check b"),
		"a renamed ring is drained when its agent restarts under the old name": `
			ring a; push a 1                            => a 1, 1 open
			mv a b; push b 2                            => a 3, 1 open, 1 ignored
			exit b; ring a; push a 4; round; round      => a 7, 1 open, 1 ignored
			ring b; push b 1                            => a 7, b 1, 2 open`,
		"a renamed ring becomes an agent when another agent takes its name": `
			ring a                                      => a 0, 1 open
			mv a b; push b 2                            => a 2, 1 open, 1 ignored
			ring a; push a 4; round; wait 2s; round; push b 1 => a 6, b 1, 2 open`,
		"rings that swap names keep their agents": `
			ring a; ring b                              => a 0, b 0, 2 open
			push a 1; push b 2; mv a c; mv b a; mv c b  => a 1, b 2, 2 open
			push b 1; push a 2                          => a 2, b 4, 2 open`,
		"a ring with two names is one agent": `
			ring a                                      => a 0, 1 open
			link a b; push a 1                          => a 1, 1 open, 1 ignored
			exit a; retire                              => 2 ignored
			rm a; ring b; push b 2                      => b 2, 1 open`,
	} {
		t.Run(name, func(t *testing.T) { runScenario(t, script) })
	}
}

// Each refusal has a reason, is reported once, and ends with its cause.
func TestRefusals(t *testing.T) {
	for name, script := range map[string]string{
		"unknown version": `
			ring a; version a 99                        => refused a (version), log refused a
			wait 2m                                     => refused a (version)
			ring a; push a 1                            => a 1, 1 open`,
		"unknown version of a known agent": `
			ring a                                      => a 0, 1 open
			version a 99; round                         => a 0, refused a (version), log refused a
			ring a; push a 1                            => a 1, 1 open`,
		"another user": `
			others; ring a                              => refused a (owner), log refused a
			rm a                                        =>`,
		"another consumer, which may hold the lock for a moment": `
			ring a; push a 1; lock a                    => 1 ignored
			unlock a; wait 250ms; look                  => a 1, 1 open`,
		"another consumer": `
			ring a; lock a                              => 1 ignored
			wait 10s                                    => refused a (locked), log refused a
			wait 10s                                    => refused a (locked)
			unlock a; push a 1; wait 1m                 => a 1, 1 open`,
		"not ready": `
			ring a; version a 0                         => 1 ignored
			wait 9s                                     => 1 ignored
			wait 1s                                     => refused a (not_ready), log refused a
			rm a                                        =>`,
		"a file that replaces one that isn't ready may become ready, too": `
			ring a; version a 0                         => 1 ignored
			wait 9s                                     => 1 ignored
			ring ../b; version ../b 0; mv ../b a; wait 1s => 1 ignored
			wait 10s                                    => refused a (not_ready), log refused a`,
		"starting agent": `
			file a                                      => 1 ignored
			ring a; push a 1; wait 250ms; look          => a 1, 1 open`,
		"truncated": `
			ring a; truncate a 100                      => 1 ignored
			wait 250ms                                  => refused a (invalid), log refused a
			rm a; check a                               =>`,
		"holes": `
			ring a v4 4096; claim a 4000                => refused a (sparse), log refused a
			rm a                                        =>`,
		"not regular, or not rings": `
			file text 100; file short 4; fifo f; symlink l text; mkdir d; check d; ring a; push a 3 => a 3, 1 open, 4 ignored, log not ring f, log not ring l, log not ring short, log not ring text
			wait 2m; look                               => a 3, 1 open, 4 ignored`,
		"files of other programs": `
			podman a; file nixl-owner.10.0.0.1.lock; real real => 1 ignored
			wait 10s; look                              => 1 ignored, log not ring a
			wait 2m; look                               => 1 ignored
			file a; ring a; push a 1                    => a 1, 1 open`,
		"no permission for a subdirectory, which has an open ring": `
			mkdir s; ring s/a                           => a 0, 1 open
			deny s; check s/a; check s/b                => a 0, 1 open, log refused s/b`,
	} {
		t.Run(name, func(t *testing.T) {
			if name == "holes" {
				t.Setenv("TMPDIR", "/dev/shm") // only on tmpfs, they take memory
			}
			runScenario(t, script)
		})
	}
}

func TestStoresInADirectory(t *testing.T) {
	for name, script := range map[string]string{
		"a store is reported until its process has exited and its last values are old": `
			stores; store 7; count 7 7                  => store 7 runs 7, 1 open
			count 7 3; idle 7                           => store 7 runs 10, 1 open
			count 7 1; end 7; rm 7; round               => store 7 exited 11, 1 open
			                                            =>`,
		"a truncated store isn't reported until it is replaced": `
			stores; store 7                             => store 7 runs 0, 1 open
			truncate 7 1024; round                      => refused 7 (invalid), log store refused 7
			rm 7; wait 1s; store 7; count 7             => store 7 runs 1, 1 open`,
		"a store beyond the limit is reported once another isn't": `
			stores 1; store 1                           => store 1 runs 0, 1 open
			store 2                                     => store 1 runs 0, 1 open, refused 2 (limit), log limit .
			idle 1; end 1                               => store 1 exited 0, 1 open, refused 2 (limit)
			round; wait 30s                             => store 2 runs 0, 1 open, 1 ignored`,
		"a process that exited long ago, and one of an earlier boot": `
			stores; store 1; store 2; idle 2 1; end 2; real real => store 1 runs 0, 1 open, 2 ignored`,
		"agents that aren't selected": `
			stores; only a*; store 1 a; store 2 b => store 1 runs 0, 1 open, 1 ignored`,
		"a store that is too short": `
			stores; store 1; real real 1000             => store 1 runs 0, 1 open, refused real (invalid), log store refused real
			wait 2m                                     => store 1 runs 0, 1 open, refused real (invalid)
			rm real                                     => store 1 runs 0, 1 open`,
		"another user's store": `
			own; stores; store 1; real real; chown real 12345 => store 1 runs 0, 1 open, refused real (owner), log store refused real`,
		"files that can't be stores": `
			stores; store 1; symlink real x             => store 1 runs 0, 1 open, 1 ignored, log not ring real
			rm real; fifo real                          => store 1 runs 0, 1 open, 1 ignored
			rm real; mkdir real                         => store 1 runs 0, 1 open
			rm real; real nixl.1.2.mmap; real nixl.a.2.3.mmap => store 1 runs 0, 1 open, 2 ignored, log not ring nixl.1.2.mmap, log not ring nixl.a.2.3.mmap
			file nixl-owner.0.0.0.0:9400.lock 100; real nixl.1.2.3.mmap.staging => store 1 runs 0, 1 open, 2 ignored`,
	} {
		t.Run(name, func(t *testing.T) { runScenario(t, script) })
	}
}
