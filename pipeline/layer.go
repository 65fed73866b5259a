package pipeline

import (
	"context"
	"slices"
)

// LayerKind says which layer of a call a Layer is.
type LayerKind int

// The kinds of layers, innermost first.
const (
	ProgramLayer      LayerKind = iota // the program's own
	ConversationLayer                  // a conversation's, merged with the turn's settings
	BlockLayer                         // an enclosing block
	ProcessLayer                       // the host's, outermost
)

// Layer is a place where plugins are set.
type Layer struct {
	Kind           LayerKind
	Plugins        []*Plugin
	ProgramPlugins *bool // false, in any layer but the program's own, drops the program's plugins
}

// Order returns the plugins of layers, given innermost first, in the order their
// handlers run: the program's own first, the process's last, within a layer in
// list order. A plugin in several layers runs once, in its outermost; two
// plugins are the same only when they are the same pointer.
func Order(layers []Layer) []*Plugin {
	keepProgram := true
	n := 0
	for _, l := range layers {
		n += len(l.Plugins)
		if l.Kind != ProgramLayer && l.ProgramPlugins != nil && !*l.ProgramPlugins {
			keepProgram = false
		}
	}
	if n == 0 {
		return nil
	}
	order := make([]*Plugin, 0, n)
	for i, l := range layers {
		if l.Kind == ProgramLayer && !keepProgram {
			continue
		}
		for j, p := range l.Plugins {
			if !slices.Contains(l.Plugins[:j], p) && !inOuter(layers[i+1:], p) {
				order = append(order, p)
			}
		}
	}
	return order
}

func inOuter(outer []Layer, p *Plugin) bool {
	for _, l := range outer {
		if slices.Contains(l.Plugins, p) {
			return true
		}
	}
	return false
}

type layersKey struct{}

// enclosing are the layers around a call, outermost last, as a linked list so
// that adding one costs one allocation and reading none.
type enclosing struct {
	layer Layer
	outer *enclosing
}

// With returns a context in which calls have one more layer around them, inside
// the layers the context already has. A layer of no kind is a block's: what is
// around a call is never the program's own.
func With(ctx context.Context, l Layer) context.Context {
	if l.Kind == ProgramLayer {
		l.Kind = BlockLayer
	}
	outer, _ := ctx.Value(layersKey{}).(*enclosing)
	return context.WithValue(ctx, layersKey{}, &enclosing{l, outer})
}

// layers are those around a call, innermost first.
func (c *Caller) layers(ctx context.Context, p *Program) []Layer {
	var layers []Layer
	if len(p.plugins) > 0 {
		layers = append(layers, Layer{Kind: ProgramLayer, Plugins: p.plugins})
	}
	add := func(kind LayerKind, l Layer) {
		if len(l.Plugins) > 0 || l.ProgramPlugins != nil {
			l.Kind = kind
			layers = append(layers, l)
		}
	}
	add(ConversationLayer, c.Conversation)
	for e, _ := ctx.Value(layersKey{}).(*enclosing); e != nil; e = e.outer {
		add(e.layer.Kind, e.layer)
	}
	add(ProcessLayer, c.Process)
	return layers
}
