// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel"

	"github.com/nixl-otel/nixl-otel/bridge/internal/scope"
	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
)

// checkName rejects a name that isn't valid as a ring's file name. It applies to
// all agents, so that a program can switch between a ring and a MeterProvider.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return fmt.Errorf("agent name %q: must be a file name: not empty, not . or .., without / and NUL", name)
	}
	return nil
}

// claims holds the open agents of this process.
var claims struct {
	mu   sync.Mutex
	open []*core
}

// claim adds the agent to the open ones, and opens its buffer, unless an open agent
// writes to the same ring or to the same series.
func (c *core) claim(cfg *config) error {
	claims.mu.Lock()
	defer claims.mu.Unlock()
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
	return c.provider != nil && o.provider != nil && c.nameInResource == o.nameInResource &&
		(c.nameInResource || text.Valid(c.name) == text.Valid(o.name)) && scope.Same(c.provider, o.provider)
}

// release ends the observed series of a closed agent and removes it from the open ones.
// It must not unregister the callback under a lock, because the SDK waits for a running
// collection, and thus for its callbacks.
func (c *core) release() {
	if c.registration != nil {
		if err := c.registration.Unregister(); err != nil {
			otel.Handle(fmt.Errorf("agent %s: end its series: %w", c.name, err))
		}
	}
	claims.mu.Lock()
	defer claims.mu.Unlock()
	claims.open = slices.DeleteFunc(claims.open, func(o *core) bool { return o == c })
}
