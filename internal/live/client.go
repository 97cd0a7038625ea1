// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"
)

// Marshal returns the line of a frame.
func (f *Frame) Marshal() ([]byte, error) {
	f.Version = Version
	f.shareBounds()
	b, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode a frame: %w", err)
	}
	return append(b, '\n'), nil
}

// Unmarshal is the reverse of Marshal. It returns an error if the frame is of another version,
// or has only an error.
func (f *Frame) Unmarshal(line []byte) error {
	err := json.Unmarshal(line, f)
	switch {
	case f.Error != "":
		return errors.New(f.Error)
	case f.Version != 0 && f.Version != Version:
		return fmt.Errorf("the Collector serves version %d, but this program reads version %d; use programs of the same release", f.Version, Version)
	case err != nil || f.Version == 0:
		return errors.Join(errors.New("the answer isn't a frame of the receiver nixl_shm"), err)
	}
	f.takeBounds()
	return nil
}

// Client is a connection to a receiver. Its methods must not be called concurrently.
type Client struct {
	conn net.Conn
	in   *bufio.Reader
}

// Dial connects to the receiver's socket at path.
func Dial(ctx context.Context, path string) (*Client, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("connect to the receiver: %w", err)
	}
	return &Client{conn: conn, in: bufio.NewReaderSize(conn, 1<<16)}, nil
}

// timeout limits the wait for a frame if the context doesn't.
const timeout = 10 * time.Second

// Next requests a frame.
func (c *Client) Next(ctx context.Context, r Request) (*Frame, error) {
	r.Version = Version
	line, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode a request: %w", err)
	}
	deadline := time.Now().Add(timeout)
	if end, ok := ctx.Deadline(); ok && end.Before(deadline) {
		deadline = end
	}
	if err := c.conn.SetDeadline(deadline); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { _ = c.conn.SetDeadline(time.Unix(1, 0)) })()
	_, errWrite := c.conn.Write(append(line, '\n'))
	answer, err := c.in.ReadBytes('\n') // a receiver that refuses a client answers before it reads, and closes the connection
	switch {
	case err != nil && errWrite != nil:
		return nil, fmt.Errorf("request a frame: %w", errWrite)
	case errors.Is(err, io.EOF):
		return nil, errors.New("the receiver has closed the connection")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, fmt.Errorf("the receiver doesn't answer: %w", os.ErrDeadlineExceeded)
	case err != nil:
		return nil, fmt.Errorf("read a frame: %w", err)
	}
	f := new(Frame)
	if err := f.Unmarshal(answer); err != nil {
		return nil, err
	}
	return f, nil
}

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }
