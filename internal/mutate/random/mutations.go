// Copyright The nixl-otel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
)

// mutation replaces a part of a file.
type mutation struct {
	file       string // relative to the root
	start, end int    // bytes
	new, what  string
}

// apply returns the mutated file.
func (m mutation) apply(src []byte) []byte {
	return []byte(string(src[:m.start]) + m.new + string(src[m.end:]))
}

// lines returns the number of the first changed line, and that line before and after.
func (m mutation) lines(src []byte) (number int, before, after string) {
	from := strings.LastIndexByte(string(src[:m.start]), '\n') + 1
	before, _, _ = strings.Cut(string(src[from:]), "\n")
	after, _, _ = strings.Cut(string(m.apply(src)[from:]), "\n")
	return 1 + strings.Count(string(src[:from]), "\n"), strings.TrimSpace(before), strings.TrimSpace(after)
}

// moved and negated replace comparisons.
var (
	moved   = map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">"}
	negated = map[token.Token]string{
		token.LSS: ">=", token.LEQ: ">", token.GTR: "<=", token.GEQ: "<", token.EQL: "!=", token.NEQ: "==",
		token.LAND: "||", token.LOR: "&&",
	}
)

// mutationsOf returns the mutations of a file, or none of a generated one and of doc.go.
func mutationsOf(name string, src []byte) ([]mutation, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) || filepath.Base(name) == "doc.go" {
		return nil, err
	}
	var list []mutation
	at := func(p token.Pos) int { return files.Position(p).Offset }
	add := func(from, to token.Pos, text, what string) {
		list = append(list, mutation{name, at(from), at(to), text, what})
	}
	statements := func(stmts []ast.Stmt) {
		for _, s := range stmts {
			if removable(s) {
				add(s.Pos(), s.End(), "", "statement removed")
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			end := n.OpPos + token.Pos(len(n.Op.String()))
			if replacement := moved[n.Op]; replacement != "" {
				add(n.OpPos, end, replacement, "comparison moved")
			}
			if replacement := negated[n.Op]; replacement != "" {
				add(n.OpPos, end, replacement, "condition negated")
			}
		case *ast.BlockStmt:
			statements(n.List)
		case *ast.CaseClause:
			statements(n.Body)
		case *ast.CommClause:
			statements(n.Body)
		case *ast.IfStmt:
			add(n.Cond.Pos(), n.Cond.End(), "!("+string(src[at(n.Cond.Pos()):at(n.Cond.End())])+")", "condition negated")
		case *ast.Ident:
			if inverted := map[string]string{"true": "false", "false": "true"}[n.Name]; inverted != "" {
				add(n.Pos(), n.End(), inverted, "boolean inverted")
			}
		case *ast.BasicLit:
			if v, err := strconv.ParseInt(n.Value, 0, 64); n.Kind == token.INT && err == nil {
				add(n.Pos(), n.End(), strconv.FormatInt(v+1, 10), "constant changed")
			} else if n.Kind == token.FLOAT {
				add(n.Pos(), n.End(), "(2*"+n.Value+"+1)", "constant changed")
			}
		}
		return true
	})
	return list, nil
}

// removable reports whether a program without the statement may compile.
func removable(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.AssignStmt:
		return s.Tok != token.DEFINE
	case *ast.ExprStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeferStmt, *ast.BranchStmt, *ast.ReturnStmt:
		return true
	default:
		return false
	}
}
