// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
)

// checkName rejects a name that isn't valid as a ring's file name. It applies to
// all agents, so that a program can switch between a ring and a MeterProvider.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("agent name %q: must be a file name: not empty, not . or .., without / and NUL", name)
	}
	return nil
}

// claims holds the agents of this process.
var claims struct {
	mu        sync.Mutex
	open      []*core
	lingering []lingering // closed, oldest first
}

// lingering is a closed agent that is still reported.
type lingering struct {
	*core
	timer *time.Timer
}

const (
	// reportClosed is how long a closed agent is reported: as long as the receiver
	// reports an exited agent.
	reportClosed = 5 * time.Minute
	// maxLingering bounds the memory for closed agents.
	maxLingering = 500
)

// claim adds the agent to the open ones, and opens its buffer, unless an open agent
// writes to the same ring or to the same series. The series of a closed agent that the
// new one continues end.
func (c *core) claim(cfg *config) error {
	claims.mu.Lock()
	err := c.open(cfg)
	var ended lingering
	if i := slices.IndexFunc(claims.lingering, func(l lingering) bool { return c.sameSeries(l.core) }); i >= 0 && err == nil {
		ended = claims.lingering[i]
		claims.lingering = slices.Delete(claims.lingering, i, i+1)
	}
	claims.mu.Unlock()
	ended.end()
	return err
}

func (c *core) open(cfg *config) error {
	var path string
	var file os.FileInfo // nil if the ring doesn't exist; nobody writes to it then
	if cfg.ring {
		path = filepath.Join(cfg.dir, c.name)
		file, _ = os.Stat(path)
	}
	for _, o := range claims.open {
		switch {
		case file != nil && o.file != nil && os.SameFile(file, o.file):
			return fmt.Errorf("ring %s: the open agent %s of this process writes to it as %s; "+
				"a ring must have only one writer: share that agent, or use another name", path, o.name, o.buffer.ring.w.Path())
		case o.name == c.name && cfg.ring && o.provider != nil:
			return otherWay("MeterProvider")
		case o.name == c.name && !cfg.ring && o.provider == nil:
			return otherWay("ring")
		case c.sameSeries(o):
			return fmt.Errorf("the open agent %s of this process reports the same series through the same MeterProvider; "+
				"share that agent, or use another name; WithNameInResource requires a MeterProvider for each agent", o.name)
		}
	}
	if err := c.openBuffer(cfg, path); err != nil {
		return err
	}
	claims.open = append(claims.open, c)
	return nil
}

func otherWay(way string) error {
	return fmt.Errorf("an open agent of this process reports this name through a %s: "+
		"a backend would count it twice; use the same option for both agents, or another name", way)
}

// sameSeries reports whether two agents report the same series.
func (c *core) sameSeries(o *core) bool {
	return c.provider != nil && o.provider != nil && reflect.TypeOf(c.provider).Comparable() && c.provider == o.provider &&
		c.nameInResource == o.nameInResource && (c.nameInResource || c.name == o.name)
}

// release removes a closed agent from the open ones. Its series end after a while.
func (c *core) release() {
	claims.mu.Lock()
	claims.open = slices.DeleteFunc(claims.open, func(o *core) bool { return o == c })
	var ended lingering
	if c.registration != nil {
		claims.lingering = append(claims.lingering, lingering{c, time.AfterFunc(reportClosed, c.forget)})
	}
	if len(claims.lingering) > maxLingering {
		ended = claims.lingering[0]
		claims.lingering = slices.Delete(claims.lingering, 0, 1)
	}
	claims.mu.Unlock()
	ended.end()
}

// forget ends the series of a closed agent.
func (c *core) forget() {
	claims.mu.Lock()
	claims.lingering = slices.DeleteFunc(claims.lingering, func(l lingering) bool { return l.core == c })
	claims.mu.Unlock()
	c.unregister()
}

func (l lingering) end() {
	if l.core != nil {
		l.timer.Stop()
		l.unregister()
	}
}

// unregister ends the agent's observed series. The caller must not hold claims.mu,
// because the SDK waits for a running collection.
func (c *core) unregister() {
	if err := c.registration.Unregister(); err != nil {
		otel.Handle(fmt.Errorf("agent %s: end its series: %w", c.name, err))
	}
}
