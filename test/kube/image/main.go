// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

// Command image writes a container image with only a few files as an archive that
// containerd, kind and docker can load. It needs no daemon and no registry.
//
//	image -o FILE -name NAME -entrypoint PATH [-user UID] [-cmd ARGUMENT] SOURCE:PATH...
package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
)

func main() {
	out := flag.String("o", "", "path of the archive")
	name := flag.String("name", "", "name and tag of the image")
	entrypoint := flag.String("entrypoint", "", "path of the program in the image")
	user := flag.String("user", "", "user that the program runs as")
	cmd := flag.String("cmd", "", "argument of the program")
	flag.Parse()
	image := image{Entrypoint: []string{*entrypoint}, User: *user, Env: []string{"PATH=/usr/bin:/bin"}}
	if *cmd != "" {
		image.Cmd = []string{*cmd}
	}
	err := image.write(*out, *name, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// image is the part of an image's configuration that sets how containers start.
type image struct {
	Entrypoint, Cmd, Env []string
	User                 string
}

func (i image) write(out, name string, files []string) error {
	layer := new(bytes.Buffer)
	if err := writeLayer(tar.NewWriter(layer), files); err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux", "config": i,
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + sum(layer.Bytes())}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": sum(config) + ".json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return err
	}
	archive := new(bytes.Buffer)
	w := tar.NewWriter(archive)
	for _, f := range []struct {
		name    string
		content []byte
	}{{sum(config) + ".json", config}, {"layer.tar", layer.Bytes()}, {"manifest.json", manifest}} {
		if err := add(w, f.name, 0o644, f.content); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(out, archive.Bytes(), 0o644)
}

// writeLayer writes a layer with the files and the directories that a container
// needs.
func writeLayer(w *tar.Writer, files []string) error {
	for _, dir := range []string{"tmp", "etc", "var", "var/lib", "var/lib/otelcol-nixl", "usr", "usr/bin"} {
		if err := w.WriteHeader(&tar.Header{Name: dir + "/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
			return err
		}
	}
	for _, file := range files {
		source, path, ok := strings.Cut(file, ":")
		if !ok {
			return fmt.Errorf("argument %q: use SOURCE:PATH", file)
		}
		content, err := os.ReadFile(source)
		if err != nil {
			return err
		}
		if err := add(w, strings.TrimPrefix(path, "/"), 0o755, content); err != nil {
			return err
		}
	}
	return w.Close()
}

func add(w *tar.Writer, name string, mode int64, content []byte) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: int64(len(content))}); err != nil {
		return err
	}
	_, err := w.Write(content)
	return err
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
