package star

import (
	"fmt"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// maxRepeat is how many bytes a repeated text may have.
const maxRepeat = 16 << 20

// repeatName is the name of the builtin that multiplies. No file can write it.
const repeatName = "*"

// boundRepeats has every product of a file go through the builtin repeat: one
// product of a text or list could take all the memory there is.
func boundRepeats(file *syntax.File) error {
	var err error
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.BinaryExpr:
			if n.Op == syntax.STAR {
				// A node cannot be replaced: x * y becomes 1 and repeat(x, y).
				n.Op, n.Y = syntax.AND, product(n.OpPos, n.X, n.Y)
				n.X = &syntax.Literal{Token: syntax.INT, TokenPos: n.OpPos, Raw: "1", Value: int64(1)}
			}
		case *syntax.AssignStmt:
			if n.Op == syntax.STAR_EQ {
				if !plain(n.LHS) && err == nil {
					err = syntax.Error{Pos: n.OpPos, Msg: "*= needs something plain on its left; give it a name first"}
				}
				n.Op, n.RHS = syntax.EQ, product(n.OpPos, again(n.LHS), n.RHS)
			}
		}
		return err == nil
	})
	return err
}

func product(at syntax.Position, x, y syntax.Expr) *syntax.CallExpr {
	return &syntax.CallExpr{Fn: &syntax.Ident{NamePos: at, Name: repeatName}, Lparen: at, Args: []syntax.Expr{x, y}, Rparen: at}
}

// plain reports whether an expression may be evaluated twice.
func plain(e syntax.Expr) bool {
	is := true
	syntax.Walk(e, func(n syntax.Node) bool {
		switch n.(type) {
		case *syntax.CallExpr, *syntax.Comprehension, *syntax.LambdaExpr:
			is = false
		}
		return is
	})
	return is
}

// again is the same name once more: a name is bound where it stands.
func again(e syntax.Expr) syntax.Expr {
	if p, ok := e.(*syntax.ParenExpr); ok {
		e = p.X
	}
	if id, ok := e.(*syntax.Ident); ok {
		return &syntax.Ident{NamePos: id.NamePos, Name: id.Name}
	}
	return e
}

// repeat is x * y, where what is repeated stays within bounds.
func repeat(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, _ []starlark.Tuple) (starlark.Value, error) {
	x, y := args[0], args[1]
	for _, pair := range [][2]starlark.Value{{x, y}, {y, x}} {
		n, ok := pair[1].(starlark.Int)
		size := starlark.Len(pair[0])
		if !ok || size <= 0 || n.Sign() <= 0 {
			continue
		}
		most, unit := maxRange, "elements"
		switch pair[0].(type) {
		case starlark.String, starlark.Bytes:
			most, unit = maxRepeat, "bytes"
		}
		if times, ok := n.Int64(); !ok || times > int64(most/size) {
			return nil, fmt.Errorf("repeating %d %s %s times is too much; there may be %d", size, unit, n, most)
		}
	}
	return starlark.Binary(syntax.STAR, x, y)
}
