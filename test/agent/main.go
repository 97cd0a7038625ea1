// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Agent runs simulated NIXL agents. By default, the process has one agent, with a ring in the directory from its
// environment, or in -dir, which simulates a program that sets its variables after its start. With -ranks, it is an
// inference engine: it starts a process per rank, each with an agent. The ranks of a launcher such as torchrun have
// LOCAL_RANK in their environment. With -title, a rank is an argument, and the process sets its title as vLLM and SGLang
// do, which erases its environment. With -parent, the engine has set its own title before, and forks its workers, so
// nobody can ever read an environment.
//
// It writes as many transfers as each line of input says, with every agent, and exits at the end of the input, after
// one last transfer. It prints the number of written events at the start, after each line, and when it exits. With
// -listen, commands arrive on a socket:
//
//	agent send N     write N transfers with each agent
//	agent send die   exit, as in a crash
//
// With -attack, it is a hostile container instead.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/nixl-otel/nixl-otel/internal/process"
	"github.com/nixl-otel/nixl-otel/test/internal/title"
)

// options are the flags. The engine passes its own to its workers.
type options struct {
	dir, name     string
	slots, ranks  int
	rank          int // of a worker, or -1
	title, parent string
	wait          time.Duration
	listen, drop  bool
}

func main() {
	env, o := process.Env(os.LookupEnv), options{}
	dir := ""
	if env.WritesRing() {
		dir = env.Dir()
	}
	slots, err := env.BufferSize()
	flag.StringVar(&o.dir, "dir", dir, "create rings in this `directory`")
	flag.IntVar(&o.slots, "slots", slots, "create rings with this `number` of slots")
	flag.StringVar(&o.name, "name", "agent", "`name` of the agent, with %d for the rank; random if empty")
	flag.IntVar(&o.ranks, "ranks", 0, "start this `number` of processes")
	flag.IntVar(&o.rank, "rank", -1, "be the process of this `rank`")
	flag.StringVar(&o.title, "title", "", "set this `title` in the process of each rank, with %d for the rank")
	flag.StringVar(&o.parent, "parent", "", "set this `title` first, and fork the ranks")
	flag.DurationVar(&o.wait, "wait", 0, "let a rank import modules for this long before it sets its title")
	flag.BoolVar(&o.listen, "listen", false, "get commands from a socket, not from the input")
	flag.BoolVar(&o.drop, "drop", false, "drop events if the ring is full, as NIXL does, instead of exiting")
	hostile := flag.String("attack", "", "do this instead")
	n := flag.Int("n", 1, "do it this often")
	flag.Parse()
	switch {
	case err != nil:
	case *hostile != "":
		err = attack(*hostile, cmp.Or(o.dir, env.Dir()), *n)
	case flag.NArg() == 2 && flag.Arg(0) == "send":
		err = send(flag.Arg(1))
	case o.dir == "":
		err = errors.New("set NIXL_TELEMETRY_ENABLE=y: without it, NIXL creates no ring")
	case o.rank >= 0 || o.ranks == 0:
		err = o.work(os.Stdin)
	default:
		err = o.serve()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// work is the process of an agent.
func (o options) work(in io.Reader) error {
	<-time.After(o.wait)
	if o.title != "" {
		if err := errors.Join(title.Set(expand(o.title, o.rank)), os.Setenv("LOCAL_RANK", strconv.Itoa(o.rank))); err != nil {
			return err
		}
	}
	a, err := create(o)
	if err != nil {
		return err
	}
	defer a.ring.Close()
	fmt.Println(a.written)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		n, err := strconv.Atoi(lines.Text())
		if err == nil {
			err = a.write(n)
		}
		if err != nil {
			return err
		}
		fmt.Println(a.written)
	}
	err = errors.Join(lines.Err(), a.write(1))
	fmt.Println(a.written)
	return err
}
