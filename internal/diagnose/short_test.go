// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package diagnose_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/nixl-otel/nixl-otel/internal/diagnose"
	"github.com/nixl-otel/nixl-otel/internal/diagnose/fleets"
)

// watched returns the frames of ten seconds of agents. state changes an agent at a second; without a name, it is absent.
func watched(agents int, state func(i, second int, a *diagnose.Agent)) (frames []*diagnose.Frame) {
	for second := range 11 {
		f := &diagnose.Frame{Time: time.Unix(int64(second), 0)}
		for i := range agents {
			a := diagnose.Agent{
				Identity: diagnose.Identity{ID: fmt.Sprintf("%02d", i), Name: fmt.Sprint("decode-", i)}, Up: diagnose.Yes,
				Ring: &diagnose.Ring{Capacity: 1 << 14, Consumer: &diagnose.Consumer{PID: 1, Name: "collector"}},
			}
			if state(i, second, &a); a.Name != "" {
				f.Agents = append(f.Agents, a)
			}
		}
		frames = append(frames, f)
	}
	return frames
}

// transfers adds transfers of 4 MiB and some milliseconds each.
func transfers(a *diagnose.Agent, direction, n int, milliseconds float64) {
	a.Moved[direction] = diagnose.Moved{Bytes: uint64(n) << 22, Transfers: uint64(n), Seconds: float64(n) * milliseconds / 1000}
	a.Events += 4 * uint64(n)
}

// stopped is the state of an agent with transfers before, but none now.
func stopped(a *diagnose.Agent) {
	transfers(a, 0, 100, 1)
	a.Before = 100
}

// takeOver is an agent that hangs, whose peers then complete half as many transfers more as it did, or a few less.
func takeOver(less int) func(i, second int, a *diagnose.Agent) {
	return func(i, second int, a *diagnose.Agent) {
		switch after := max(0, second-5); i {
		case 0:
			transfers(a, 0, 20*(second-after), 1)
		case 1:
			transfers(a, 0, 20*second+10*after-less*after/5, 1)
		default:
			transfers(a, 0, 20*second, 1)
		}
	}
}

// fewTransfers returns agents with a number of transfers in all. Those of one take twice as long.
func fewTransfers(n int) func(i, second int, a *diagnose.Agent) {
	return func(i, second int, a *diagnose.Agent) {
		if transfers(a, 0, n*second/10, 1); i == 2 {
			transfers(a, 0, n*second/10, 2)
		}
	}
}

// instead is an agent that stops to read, and then completes some more writes per second.
func instead(more int) func(i, second int, a *diagnose.Agent) {
	return func(i, second int, a *diagnose.Agent) {
		transfers(a, 0, 100*second, 1)
		if transfers(a, 1, 20*second, 1); i == 3 {
			transfers(a, 0, 100*second+more*max(0, second-5), 1)
			transfers(a, 1, 20*min(second, 5), 1)
		}
	}
}

// hungBefore returns agents that write and read, except for one that only writes. Its ring remembers some reads and writes.
func hungBefore(reads, writes uint64) func(i, second int, a *diagnose.Agent) {
	return func(i, second int, a *diagnose.Agent) {
		transfers(a, 0, 100*second, 1)
		if a.Before = 200; i != 3 {
			transfers(a, 1, 100*second, 1)
		}
		for d, n := range []uint64{writes, reads} {
			a.Remembered[d] = diagnose.Moved{Bytes: n << 22, Transfers: n, Seconds: float64(n) / 1000}
		}
	}
}

// spread returns agents whose speeds vary. The first is slower than the others by three standard deviations and some bytes
// per second.
func spread(more uint64) func(i, second int, a *diagnose.Agent) {
	return func(i, second int, a *diagnose.Agent) {
		n, speeds := uint64(second), [...]uint64{55_522_000 - more, 90_000_000, 90_000_000, 100_000_000, 110_000_000, 110_000_000}
		if a.Moved[0] = (diagnose.Moved{Bytes: n * speeds[i], Transfers: 20 * n, Seconds: float64(n)}); i == 0 {
			a.Moved[0].Transfers = 10 * n
		}
	}
}

// shortWatch is ten seconds of agents.
type shortWatch struct {
	name   string
	agents int
	state  func(i, second int, a *diagnose.Agent)
}

func (s *shortWatch) watch() diagnose.Result {
	return diagnose.Watched(watched(s.agents, s.state), diagnose.Watch(10*time.Second))
}

// short returns watches; testdata/short.txt has what is said about each.
func short() []shortWatch {
	busy := func(second int, a *diagnose.Agent) { transfers(a, 0, 100+20*second, 1) }
	return []shortWatch{
		{"nothing drains rings", 64, func(i, second int, a *diagnose.Agent) {
			busy(second, a)
			if a.Ring.Consumer, a.Ring.Peak = nil, int(a.Events); i == 7 {
				a.Moved[0].Seconds *= 4
			}
		}},
		{"rings are full", 2, func(_, second int, a *diagnose.Agent) {
			stopped(a)
			a.Ring.Consumer, a.Ring.Peak, a.Ring.Saturations = nil, 1<<14-1, uint64(second)
		}},
		{"another program drains rings", 2, func(_, second int, a *diagnose.Agent) {
			busy(second, a)
			a.Ring.Consumer = nil
		}},
		{"events of unknown types", 3, func(i, second int, a *diagnose.Agent) {
			if i < 2 {
				a.Events, a.Unknown = uint64(second), map[string]uint64{"unknown_event_21": uint64(second), "stuck\n": uint64(i)}
			}
		}},
		{"a consumer hangs", 2, func(_, second int, a *diagnose.Agent) {
			busy(second, a)
			a.Ring.Peak = int(a.Events)
		}},
		{"an agent stopped before", 4, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i == 2 {
				stopped(a)
			}
		}},
		{"a spare agent", 4, func(i, second int, a *diagnose.Agent) {
			if i != 2 {
				busy(second, a)
			}
		}},
		{"a spare agent that may have exited", 4, func(i, second int, a *diagnose.Agent) {
			if a.Up = diagnose.Unknown; i != 2 {
				busy(second, a)
			}
		}},
		{"a spare agent among those that complete just enough", 4, func(i, second int, a *diagnose.Agent) {
			if i != 2 {
				transfers(a, 0, 4*second, 1)
			}
		}},
		{"all stopped before", 4, func(_, _ int, a *diagnose.Agent) { stopped(a) }},
		{"all have never done", 4, func(int, int, *diagnose.Agent) {}},
		{"reads of one agent are slow", 5, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, 1)
			if transfers(a, 1, 20*second, 1); i == 3 {
				transfers(a, 1, 20*second, 4)
			}
		}},
		{"reads of one agent hang", 5, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, 1)
			if transfers(a, 1, 20*second, 1); i == 3 {
				transfers(a, 1, 20*min(second, 5), 1)
			}
		}},
		{"a peer takes over half of the load of an agent that hangs", 4, takeOver(0)},
		{"a peer takes over almost half of the load", 4, takeOver(1)},
		{"reads of one agent hung before", 5, hungBefore(100, 100)},
		{"reads of one agent hung before, and its ring remembers just enough", 5, hungBefore(20, 20)},
		{"reads of one agent hung before, and its ring remembers too few", 5, hungBefore(19, 100)},
		{"reads of one agent hung before, whose ring remembers too few writes", 5, hungBefore(100, 19)},
		{"an agent with empty transfers hangs", 5, func(i, second int, a *diagnose.Agent) {
			if transfers(a, 0, 20*second, 1); i == 3 {
				transfers(a, 0, 20*min(second, 5), 1)
			}
			a.Moved[0].Bytes = 0
		}},
		{"events of one unknown type", 2, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i == 0 {
				a.Unknown = map[string]uint64{"unknown_event_21": 1}
			}
		}},
		{"five operations of one agent fail, and four of another", 2, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 10*second, 1)
			a.Errors = map[string]uint64{"backend": uint64(min(second, 2) + max(0, min(second-6, 3-i)))}
		}},
		{"all reads of a job stopped before", 4, func(_, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, 1)
			for d := range a.Remembered {
				a.Remembered[d] = diagnose.Moved{Bytes: 100 << 22, Transfers: 100, Seconds: 0.1}
			}
			a.Before = 200
		}},
		{"six of twelve agents at 27% of the speed", 12, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, []float64{1, 1 / 0.27}[i%2])
		}},
		{"a third of the operations is canceled, or nearly half, as always or not", 2, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 60*second, 1)
			a.Errors = map[string]uint64{diagnose.Canceled: uint64([]int{30, 45}[i] * second)}
		}},
		{"an agent completed one transfer, and one none", 3, func(i, second int, a *diagnose.Agent) {
			if transfers(a, 0, 20*second, 1); i < 2 {
				a.Moved[0] = diagnose.Moved{Bytes: uint64(i*second/8) << 22, Transfers: uint64(i * second / 8), Seconds: 0.001}
			}
		}},
		{"one of two agents with few transfers exited", 2, func(i, second int, a *diagnose.Agent) {
			if transfers(a, 0, second/3, 1); i == 1 && second > 7 {
				a.Up = diagnose.No
			}
		}},
		{"metrics of some agents stop", 6, func(i, second int, a *diagnose.Agent) {
			switch busy(second, a); {
			case i == 0 && second > 5, i == 1 && second > 6, i > 1 && i < 5 && second > 2:
				a.Name = ""
			case i == 2:
				a.Path = "/run/nixl/ring" // this process would see it
			case i == 3:
				a.Up = diagnose.Unknown
			case i == 4:
				a.Host = "node-1"
			}
		}},
		{"metrics of one of two agents of a host stop", 2, func(i, second int, a *diagnose.Agent) {
			a.Host, a.Cluster = "node-1", "east"
			if busy(second, a); i == 0 && second > 2 {
				a.Name = ""
			}
		}},
		{"an agent writes instead of reading", 5, instead(10)},
		{"an agent stops to read, and writes a little more", 5, instead(9)},
		{"both agents of a job stop to read", 2, func(_, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, 1)
			transfers(a, 1, 20*min(second, 5), 1)
		}},
		{"the only agent of a job stops to read", 1, func(_, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, 1)
			transfers(a, 1, 20*min(second, 5), 1)
		}},
		{"an agent with few reads, and none", 5, func(i, second int, a *diagnose.Agent) {
			if transfers(a, 0, 100*second, 1); i == 3 {
				transfers(a, 1, second/2, 1)
			}
		}},
		{"one of two jobs stopped before", 8, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i < 4 {
				stopped(a)
				a.Service = "prefill"
			}
		}},
		{"all became slow before", 4, func(_, second int, a *diagnose.Agent) {
			transfers(a, 0, 100+20*second, 8)
			a.Remembered[0] = diagnose.Moved{Bytes: 100 << 22, Transfers: 100, Seconds: 0.1}
		}},
		{"all had smaller transfers before", 4, func(_, second int, a *diagnose.Agent) {
			transfers(a, 0, 100+20*second, 8)
			a.Remembered[0] = diagnose.Moved{Bytes: 100 << 20, Transfers: 100, Seconds: 0.01}
		}},
		{"all had transfers of half the size before", 4, func(_, second int, a *diagnose.Agent) {
			transfers(a, 0, 100+20*second, 8)
			a.Remembered[0] = diagnose.Moved{Bytes: 100 << 21, Transfers: 100, Seconds: 0.1}
		}},
		{"all had transfers of twice the size before", 4, func(_, second int, a *diagnose.Agent) {
			transfers(a, 0, 100+20*second, 8)
			a.Remembered[0] = diagnose.Moved{Bytes: 100 << 23, Transfers: 100, Seconds: 0.1}
		}},
		{"the transfers of one agent are empty", 5, func(i, second int, a *diagnose.Agent) {
			if a.Moved[0] = (diagnose.Moved{Bytes: 1000 * uint64(second), Transfers: 100 * uint64(second), Seconds: float64(second)}); i == 3 {
				a.Moved[0].Bytes, a.Moved[0].Seconds = 0, 2*float64(second)
			}
		}},
		{"an agent completed one transfer before", 2, func(i, _ int, a *diagnose.Agent) { a.Before = uint64(i) }},
		{"one agent is three standard deviations slower, as the median deviation of 10 MB/s shows", 6, spread(0)},
		{"one agent is a little slower than that", 6, spread(1)},
		{"an agent that posts slowly restarts with more and smaller transfers", 1, func(_, second int, a *diagnose.Agent) {
			if transfers(a, 0, 100*second, 1); second >= 5 {
				a.Moved[0].Bytes = uint64(100*second) << 20
			}
			a.Post = a.Moved[0].Seconds * 0.9
		}},
		{"a loop of crashes", 2, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i == 1 {
				a.Ring.Restarts = uint64(second / 3)
			}
		}},
		{"a loop of crashes with a new ring each time", 2, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i == 1 {
				a.ID = fmt.Sprint("life ", second/3)
				if second%3 == 2 {
					a.Up = diagnose.No
				}
			}
		}},
		{"both directions of one agent are slow", 5, func(i, second int, a *diagnose.Agent) {
			for d := range a.Moved {
				if transfers(a, d, 100*second, 1); i == 3 {
					transfers(a, d, 100*second, float64(3+d))
				}
			}
		}},
		{"one agent exited", 4, func(i, second int, a *diagnose.Agent) {
			if busy(min(second, 5), a); i != 0 {
				busy(second, a)
			} else if second > 5 {
				a.Up = diagnose.No
			}
		}},
		{"two agents exited, and their rings were removed", 4, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i < 2 && second > 5 {
				a.Up = diagnose.No
			}
			if i < 2 && second > 7 {
				a.Name = ""
			}
		}},
		{"all agents exited", 2, func(_, second int, a *diagnose.Agent) {
			busy(second, a)
			a.Up = diagnose.No
		}},
		{"an agent stopped before, and may have exited", 4, func(i, second int, a *diagnose.Agent) {
			a.Namespace, a.Service, a.Pod, a.Host = "inference", "decode", fmt.Sprint("pod-", i), "node-1"
			if busy(second, a); i == 2 {
				stopped(a)
				a.Up = diagnose.Unknown
			}
		}},
		{"an agent alone", 1, func(_, second int, a *diagnose.Agent) { transfers(a, 0, second, 1) }},
		{"an agent with stores", 1, func(_, second int, a *diagnose.Agent) {
			busy(second, a)
			a.Ring, a.Store = nil, true
		}},
		{"an agent with stores gets a ring", 1, func(_, second int, a *diagnose.Agent) {
			if busy(second, a); second < 5 {
				a.Ring, a.Store = nil, true
			}
		}},
		{"operations of two agents fail", 4, func(i, second int, a *diagnose.Agent) {
			busy(second, a)
			a.Errors = map[string]uint64{"backend": 5, diagnose.Canceled: uint64(100 * second), diagnose.NotFound: 3}
			if i < 2 {
				a.Errors = map[string]uint64{"backend": uint64(4 * (i + 1) * second), "invalid_param": uint64(6 * second), "timeout": 1}
			}
		}},
		{"ten failed operations are few", 2, func(i, second int, a *diagnose.Agent) {
			if i == 0 {
				transfers(a, 0, second, 1)
				a.Errors = map[string]uint64{"backend": uint64(second), "mismatch": uint64(second / 10), diagnose.Canceled: uint64(second)}
				a.Errors["backend"] -= a.Errors["mismatch"]
			}
		}},
		{"one more failed operation isn't", 2, func(i, second int, a *diagnose.Agent) {
			if i == 0 {
				transfers(a, 0, second, 1)
				a.Errors = map[string]uint64{"backend": uint64(second), "mismatch": uint64(second / 10)}
			}
		}},
		{"one of five agents is slow, and three of nine others", 14, func(i, second int, a *diagnose.Agent) {
			if transfers(a, 0, 100*second, 1); i < 5 {
				a.Service = "prefill"
			}
			if i == 0 || i > 10 {
				transfers(a, 0, 100*second, 2)
			}
		}},
		{"one of two others is far slower", 5, func(i, second int, a *diagnose.Agent) {
			if transfers(a, 0, 100*second, 1); i < 2 {
				a.Service = "prefill"
			}
			if i == 0 || i == 3 {
				transfers(a, 0, 100*second, 10)
			}
		}},
		{"two agents of five are spare", 5, func(i, second int, a *diagnose.Agent) {
			if i > 1 {
				busy(second, a)
			}
		}},
		{"half of the agents stopped before", 4, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i%2 == 0 {
				stopped(a)
			}
		}},
		{"most agents stopped before", 5, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i%2 == 0 {
				stopped(a)
			}
		}},
		{"one of three agents is slower than its ring remembers", 3, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 100+20*second, 1)
			if a.Remembered[0] = (diagnose.Moved{Bytes: 100 << 22, Transfers: 100, Seconds: 0.1}); i == 1 {
				transfers(a, 0, 100+20*second, 2)
			}
		}},
		{"an agent that remembers too little", 1, func(_, second int, a *diagnose.Agent) {
			transfers(a, 0, 100+20*second, 8)
			a.Remembered[0] = diagnose.Moved{Bytes: 99 << 22, Transfers: 99, Seconds: 0.099}
		}},
		{"an agent that posts quickly, and one that posts a little more slowly", 2, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, 0.03)
			a.Post = float64(100*second) * []float64{20e-6, 21e-6}[i]
		}},
		{"a tenth of the operations of one job fails, and a little more of another", 4, func(i, second int, a *diagnose.Agent) {
			if transfers(a, 0, 90*second, 1); i < 2 {
				a.Service = "prefill"
			}
			a.Errors = map[string]uint64{"backend": []uint64{10, 0, 11, 0}[i] * uint64(second)}
		}},
		{"look-ups of an agent find nothing", 2, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i == 1 {
				a.Errors = map[string]uint64{diagnose.NotFound: uint64(10 * second)}
			}
		}},
		{"all operations of an agent fail", 4, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i == 1 {
				a.Moved[0], a.Errors = diagnose.Moved{}, map[string]uint64{"backend": uint64(10 * second)}
			}
		}},
		{"a ring is nearly full", 2, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i == 1 {
				a.Ring.Peak = 14_000 - second
			}
		}},
		{"agents drop events", 2, func(i, second int, a *diagnose.Agent) {
			busy(second, a)
			a.Dropped, a.Ring.Torn = uint64(1000*i*second), uint64(i*second)
		}},
		{"another program takes events of some", 3, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i < 2 {
				a.Ring.Foreign = uint64(second)
			}
		}},
		{"rings fill at different speed", 3, func(i, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*(1+i%2)*second, 1)
			a.Ring.Consumer, a.Ring.Peak = nil, int(a.Events)
		}},
		{"a consumer hangs at a full ring", 1, func(_, _ int, a *diagnose.Agent) {
			stopped(a)
			a.Ring.Peak, a.Ring.Consumer.Name = 1<<14-1, ""
		}},
		{"an agent without a consumer has just started", 4, func(i, second int, a *diagnose.Agent) {
			if busy(second, a); i == 0 {
				if a.Ring.Consumer, a.Ring.Peak = nil, int(a.Events); second < 8 {
					a.Name = ""
				}
			}
		}},
		{"an agent with fewer writes does no reads", 5, func(i, second int, a *diagnose.Agent) {
			if transfers(a, 0, 100*second, 1); i != 3 {
				transfers(a, 1, 100*second, 1)
			}
		}},
		{"one transfer too few for a speed", 4, fewTransfers(diagnose.MinTransfers - 1)}, // their mean varies by chance
		{"just enough transfers for a speed", 4, fewTransfers(diagnose.MinTransfers)},
		{"a full ring, which doesn't change whatever its agent does", 4, func(i, second int, a *diagnose.Agent) {
			if i > 0 {
				transfers(a, 0, 100*second, 1)
				return
			}
			stopped(a)
			a.Ring.Consumer, a.Ring.Peak = nil, a.Ring.Capacity-1
		}},
		// The ring has no times of reads and of writes. They are shares of the time of all transfers, so that of one
		// direction decreases slightly now and then. This isn't a restart, after which all of it would count again.
		{"a slightly shorter time of a direction", 4, func(i, second int, a *diagnose.Agent) {
			if transfers(a, 0, 1000+40*(second/2), 1); i == 1 && second%2 == 1 {
				a.Moved[0].Seconds -= 1e-9
			}
		}},
		{"posting takes long, and an agent reads and writes", 1, func(_, second int, a *diagnose.Agent) {
			transfers(a, 0, 100*second, 1)
			transfers(a, 1, 50*second, 1)
			a.Post = a.Both().Seconds * 0.7
		}},
	}
}

// The ring and the watch together are an agent's past.
func TestAgentThatStopsDuringAWatchIsNamedWheneverItStopped(t *testing.T) {
	for stop := range 6 {
		for _, rate := range []int{5, 100} {
			r := diagnose.Watched(watched(6, func(i, second int, a *diagnose.Agent) {
				if a.Before = 100; i == 4 {
					second = min(second, stop)
				}
				transfers(a, 0, 100+rate*second, 1)
				a.Errors = map[string]uint64{"backend": uint64(min(second, 1))}
			}), diagnose.Watch(10*time.Second))
			if got := found(r.Findings); len(got) != 1 || got[0] != (fleets.Want{Kind: diagnose.Stalled, Agent: "decode-4"}) {
				t.Errorf("after %d s with %d transfers per second: found %v", stop, rate, got)
			}
		}
	}
}

// Nobody misses one transfer in a few seconds.
func TestAgentWithFewTransfersDoesNotLookStopped(t *testing.T) {
	r := diagnose.Watched(watched(6, func(i, second int, a *diagnose.Agent) {
		if a.Before = 100; i == 4 {
			second = second / 4 * 4
			transfers(a, 0, 100+min(second/4, 1), 1)
		} else {
			transfers(a, 0, 100+20*second, 1)
		}
	}), diagnose.Watch(10*time.Second))
	if len(r.Findings) > 0 {
		t.Errorf("found %+v", r.Findings)
	}
}

// Whether an agent restarts again and again is known after ten minutes, unless it may have exited.
func TestAgentsThatMayHaveExitedAreNotJudged(t *testing.T) {
	frames := watched(3, func(i, _ int, a *diagnose.Agent) {
		a.Up = []diagnose.Up{diagnose.Yes, diagnose.Unknown, diagnose.No}[i]
	})
	for i, f := range frames {
		f.Time = time.Unix(int64(60*i), 0)
	}
	r := diagnose.Now(frames, diagnose.Rules())
	if got := r.Checks[len(r.Checks)-1]; got.Name != "exits and restarts" || got.Well || got.What != "1 of 2 agents running, no crash loop" {
		t.Errorf("%+v", got)
	}
}

func TestProcessesOfAProgramAreOneFinding(t *testing.T) {
	found := diagnose.Processes([]diagnose.Process{
		{PID: 1, Command: "python3", Disabled: "n"},
		{PID: 2, Command: "python3"},
		{PID: 3, Command: "python3", Telemetry: true},
		{PID: 4, Command: "other"},
		{PID: 5, Command: "python3", Disabled: "0"},
		{PID: 6, Command: "python3"},
		{PID: 7, Command: "python3", Exporter: "buffer"},
	})
	diagnose.Sort(found)
	for _, f := range found {
		if exporter := f.Kind == diagnose.NoTelemetry && strings.Contains(f.What, "process 7"); exporter != (len(f.Evidence) > 1) {
			t.Errorf("%s: %q", f.What, f.Evidence)
		}
	}
	var got []string
	for _, group := range diagnose.Group(found) {
		got = append(got, fmt.Sprintf("%s: %s +%d", group[0].Severity, group[0].What, len(group)-1))
	}
	want := []string{
		"warning: python3 (2 processes, such as 1) uses NIXL with NIXL_TELEMETRY_ENABLE=0, which breaks vLLM. +0",
		"info: python3 (2 processes, such as 2) uses NIXL without telemetry. +0", "info: other (process 4) uses NIXL without telemetry. +0",
		"info: python3 (process 7) uses NIXL without telemetry. +0",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

func TestExporterIsMisspelledIfOnlyItsCaseDiffers(t *testing.T) {
	for name, want := range map[string]bool{"BUFFER": false, "buffer": true, "Buffer": true, "prometheus": false, "": false} {
		if got := diagnose.Misspelled(name); (got != "") != want {
			t.Errorf("%q: %q", name, got)
		}
	}
}

func TestNothingStoppedWithoutAgents(t *testing.T) {
	if r := diagnose.Now(watched(0, nil), diagnose.Watch(10*time.Second)); r.Still != "" || len(r.Findings) > 0 || slices.ContainsFunc(r.Checks, func(c diagnose.Check) bool { return c.Well }) {
		t.Errorf("%+v", r)
	}
}

func TestProcessesAreWellIfAllReport(t *testing.T) {
	reports, not := diagnose.Process{Telemetry: true}, diagnose.Process{}
	for _, tt := range []struct {
		list []diagnose.Process
		well bool
		what string
	}{
		{nil, false, "no process that uses NIXL was found"},
		{[]diagnose.Process{reports}, true, "1 process uses NIXL, 1 with a ring or a store"},
		{[]diagnose.Process{reports, not, reports}, false, "3 processes use NIXL, 2 with a ring or a store"},
	} {
		if c := diagnose.ProcessCheck(tt.list); c.Well != tt.well || c.What != tt.what {
			t.Errorf("%+v: %+v, want %v, %q", tt.list, c, tt.well, tt.what)
		}
	}
}

// A page that was just opened knows nothing about silence yet, whatever the rings remember.
func TestSilenceIsNotJudgedInTheFirstSecondsOfAPage(t *testing.T) {
	frames := watched(4, func(i, second int, a *diagnose.Agent) {
		if transfers(a, 0, 100+20*second, 1); i == 2 || second == 0 {
			stopped(a)
		}
	})
	at := func(second int) (said string) {
		length := time.Duration(second) * time.Second
		r := diagnose.Now(frames[:second+1], diagnose.Live(10*time.Second, length))
		for _, f := range r.Findings {
			said += f.What + "\n"
		}
		return said + r.Still
	}
	for _, second := range []int{0, 1, 4} {
		if diff := cmp.Diff("", at(second)); diff != "" {
			t.Errorf("after %d s (-want +got):\n%s", second, diff)
		}
	}
	want := "decode-2 completed no transfer for 5 s or more, although it did before.\n"
	if diff := cmp.Diff(want, at(5)); diff != "" {
		t.Errorf("after 5 s (-want +got):\n%s", diff)
	}
	frames = watched(4, func(_, _ int, a *diagnose.Agent) { stopped(a) })
	want = "No agent of this directory completed a transfer, although 4 did before.\nno agent completed a transfer, although 4 did before"
	for second, want := range map[int]string{4: "", 5: want} {
		if diff := cmp.Diff(want, at(second)); diff != "" {
			t.Errorf("after %d s without transfers (-want +got):\n%s", second, diff)
		}
	}
}
