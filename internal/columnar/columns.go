package columnar

import (
	"strings"

	"github.com/parquet-go/parquet-go"
)

// Column describes a column as a file has it.
type Column struct {
	Name     string `json:"name"`     // inside a list and a struct: "changes[].plugin"
	Type     string `json:"type"`     // text, json, timestamp (microseconds, UTC), int64, double, boolean, …
	Optional bool   `json:"optional"` // may be NULL
}

// Columns lists the file's columns in their order.
func (f *File) Columns() []Column {
	var list []Column
	for _, path := range f.file.Schema().Columns() {
		leaf, ok := f.file.Schema().Lookup(path...)
		if !ok {
			continue
		}
		list = append(list, Column{columnName(path), typeName(leaf.Node), leaf.MaxDefinitionLevel > leaf.MaxRepetitionLevel})
	}
	return list
}

// Has reports whether the file has a column of that name, outside of lists.
func (f *File) Has(column string) bool {
	_, ok := f.file.Schema().Lookup(column)
	return ok
}

// typeName is a column's type in a word.
func typeName(n parquet.Node) string {
	lt := n.Type().LogicalType()
	if lt == nil {
		return strings.ToLower(n.Type().Kind().String())
	}
	switch name := lt.String(); {
	case name == "STRING":
		return "text"
	case strings.HasPrefix(name, "TIMESTAMP"):
		return "timestamp"
	case strings.HasPrefix(name, "INT"):
		return strings.ToLower(n.Type().Kind().String())
	default:
		return strings.ToLower(name)
	}
}
