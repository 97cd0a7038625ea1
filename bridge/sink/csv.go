// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"sync"

	"github.com/nixl-otel/nixl-otel/bridge/internal/flock"
	"github.com/nixl-otel/nixl-otel/bridge/internal/text"
)

// CSVFileEnv is the environment variable with the path for [OpenCSVFromEnv]. NIXL's
// plug-in guide uses the same variable.
const CSVFileEnv = "NIXL_TELEMETRY_CSV_FILE"

// CSVHeader is the first line of a [CSV] file.
const CSVHeader = "timestamp_us,category,event_name,value\n"

// CSV is a [Sink] that appends one row per event to a file:
//
//	timestamp_us,category,event_name,value
//	1736951425123456,1,agent_tx_bytes,1048576
//
// The time is in microseconds since the epoch. The category is NIXL's number (0
// memory, 1 transfer, 2 connection, 3 backend, 4 error, 5 performance, 6 system, 7
// custom; -1 unknown). Names are quoted if RFC 4180 requires it. Rows end with LF. The
// header is only written to an empty file. Rows don't contain the agent's name; to
// distinguish agents, use one file per agent.
//
// Write writes a batch with one write(2), so a crash of the program after Write loses
// no rows.
//
// A CSV is safe for concurrent use. Several programs can append to the same file
// without mixing rows. A nil *CSV discards events.
type CSV struct {
	file *os.File

	mu   sync.Mutex // held for writing; guards the following fields
	rows []byte     // buffer for a batch, reused
	torn bool       // the file ends within a row
}

// OpenCSV opens a file for appending and creates it if necessary. The error names the
// file. Close the CSV after the agents and producers that write to it.
func OpenCSV(path string) (*CSV, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err == nil {
		if err = writeHeader(f); err == nil {
			return &CSV{file: f}, nil
		}
		err = errors.Join(err, f.Close())
	}
	return nil, fmt.Errorf("CSV sink: %w", err)
}

// OpenCSVFromEnv is like [OpenCSV] with the path in NIXL_TELEMETRY_CSV_FILE. The error
// also names the variable.
func OpenCSVFromEnv() (*CSV, error) {
	path := os.Getenv(CSVFileEnv)
	if path == "" {
		return nil, fmt.Errorf("%s isn't set; set it to the path of the CSV file", CSVFileEnv)
	}
	c, err := OpenCSV(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", CSVFileEnv, err)
	}
	return c, nil
}

// writeHeader writes the header to an empty file or a pipe.
func writeHeader(f *os.File) error {
	defer flock.Lock(f)() // another program must not write the header meanwhile
	info, err := f.Stat()
	if err == nil && info.Size() == 0 {
		_, err = io.WriteString(f, CSVHeader)
	}
	return err
}

// Write appends one row per event. The error names the file. If a batch can only be
// written in part, for example on a full disk, the rest is lost, and the next batch
// starts on a new line.
func (c *CSV) Write(events []Event) error {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rows = c.rows[:0]
	if c.torn {
		c.rows = append(c.rows, '\n')
	}
	for i := range events {
		c.rows = AppendCSV(c.rows, &events[i])
	}
	n, err := c.file.Write(c.rows)
	if n > 0 {
		c.torn = c.rows[n-1] != '\n'
	}
	if err != nil {
		return fmt.Errorf("CSV sink: %w", err)
	}
	return nil
}

// AppendCSV appends the row of an event, as written by [CSV], to b, including the
// newline.
func AppendCSV(b []byte, e *Event) []byte {
	b = strconv.AppendInt(b, e.Time.UnixMicro(), 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(e.Category), 10)
	b = append(b, ',')
	b = text.AppendField(b, e.Name)
	b = append(b, ',')
	b = strconv.AppendUint(b, e.Value, 10)
	return append(b, '\n')
}

// Close closes the file. Further calls do nothing.
func (c *CSV) Close() error {
	if c == nil {
		return nil
	}
	if err := c.file.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}
