package sink

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
)

// CSVFile is the environment variable that names the file of
// [OpenCSVFromEnv], as NIXL's plug-in guide has it.
const CSVFile = "NIXL_TELEMETRY_CSV_FILE"

// csvHeader is the first line of a file.
const csvHeader = "timestamp_us,category,event_name,value\n"

// CSV is a [Sink] that appends a row per event to a file:
//
//	timestamp_us,category,event_name,value
//	1736951425123456,1,agent_tx_bytes,1048576
//
// The time is in microseconds since the epoch, the category its integer in
// NIXL (0 memory, 1 transfer, 2 connection, 3 backend, 4 error, 5 performance,
// 6 system, 7 custom; -1 unknown), and a name is quoted where RFC 4180 asks for
// it. Rows end with LF. The header is written where the file is empty, so once
// per file. The agent isn't in a row: agents that are to be told apart take a
// file each.
//
// When Write returns, all rows of the batch are with the operating system, in
// one write(2): whatever ends the program then, the file has them whole.
// NIXL's example flushes after each row of a batch that the agent hands it all
// at once, on its run interval, and so keeps the same promise, row by row.
//
// A CSV is safe for concurrent use. Programs that append to one file at the
// same time don't cut each other's rows.
type CSV struct {
	path string

	mu   sync.Mutex
	file *os.File // nil once closed
	rows []byte   // of a batch; kept for the next
	torn bool     // the file ends within a row
}

// OpenCSV opens a file to append to, or makes it. The error names the file.
// Close it after whatever feeds it.
func OpenCSV(path string) (*CSV, error) {
	c := &CSV{path: path}
	if err := c.open(); err != nil {
		return nil, fmt.Errorf("CSV sink: %w", err)
	}
	return c, nil
}

// OpenCSVFromEnv is [OpenCSV] with the path that NIXL_TELEMETRY_CSV_FILE says.
// The error names the variable, and the file if there is one.
func OpenCSVFromEnv() (*CSV, error) {
	path := os.Getenv(CSVFile)
	if path == "" {
		return nil, fmt.Errorf("CSV sink: %s isn't set: it names the file to append to", CSVFile)
	}
	c := &CSV{path: path}
	if err := c.open(); err != nil {
		return nil, fmt.Errorf("CSV sink: %s: %w", CSVFile, err)
	}
	return c, nil
}

func (c *CSV) open() (err error) {
	f, err := os.OpenFile(c.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.Size() == 0: // a pipe too
		_, err = io.WriteString(f, csvHeader)
	case info.Mode().IsRegular():
		c.torn = c.endsTorn(info.Size())
	}
	c.file = f
	return err
}

// endsTorn says whether the file ends within a row, as a program may have left
// it that died. Where it can't be read, it is taken for whole.
func (c *CSV) endsTorn(size int64) bool {
	f, err := os.Open(c.path)
	if err != nil {
		return false
	}
	defer f.Close()
	var last [1]byte
	_, err = f.ReadAt(last[:], size-1)
	return err == nil && last[0] != '\n'
}

// Write appends a row per event. The error names the file. Of a batch that
// could be written in part only, as on a full disk, the rest is lost; the next
// one starts on a line of its own.
func (c *CSV) Write(events []Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return fmt.Errorf("CSV sink: %s: %w", c.path, os.ErrClosed)
	}
	c.rows = c.rows[:0]
	if c.torn {
		c.rows = append(c.rows, '\n')
	}
	for i := range events {
		c.rows = appendRow(c.rows, &events[i])
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

func appendRow(b []byte, e *Event) []byte {
	b = strconv.AppendInt(b, e.Time.UnixMicro(), 10)
	b = append(b, ',')
	b = strconv.AppendInt(b, int64(e.Category), 10)
	b = append(b, ',')
	b = appendField(b, e.Name)
	b = append(b, ',')
	b = strconv.AppendUint(b, e.Value, 10)
	return append(b, '\n')
}

// appendField quotes a field as RFC 4180 asks.
func appendField(b []byte, s string) []byte {
	if !strings.ContainsAny(s, "\",\r\n") {
		return append(b, s...)
	}
	b = append(b, '"')
	b = append(b, strings.ReplaceAll(s, `"`, `""`)...)
	return append(b, '"')
}

// Close closes the file. It is safe to call twice.
func (c *CSV) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return nil
	}
	err := c.file.Close()
	c.file = nil
	if err != nil {
		return fmt.Errorf("CSV sink: %w", err)
	}
	return nil
}
