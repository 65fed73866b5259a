package replay

import (
	"fmt"
	"iter"
	"runtime"
	"strings"
	"testing"

	"evalrun/datasets"
)

// conversationLog is a conversation of three turns, as a program that shows
// every earlier turn with its steps records it.
const conversationLog = `
	{CALL,"id":"t1",TEAM,"started":"@01","inputs":{"message":"Hi, I'm Alex."},"outputs":{"result":"Hello!"},"conversation":{"id":"alex","turn":"t1","parent":null},"steps":[{"kind":"model","outputs":{"result":"Hello!"}}],"exchanges":[{"request_hash":"h1","finish":"stop","response":{"text":"Hello!"}}]}
	{CALL,"id":"t2",TEAM,"started":"@02","inputs":{"message":"What is 2+2?"},"outputs":{"result":"4"},"saw":[{"saw_of":"t1"},{"call":"t1","steps":true}],"conversation":{"id":"alex","turn":"t2","parent":"t1"},"steps":[{"kind":"model","outputs":{"result":"4"}}],"exchanges":[{"request_hash":"h2","finish":null,"error":{"type":"ServerError"}},{"request_hash":"h2","finish":"stop","response":{"text":"4"}}]}
	{CALL,"id":"t3",TEAM,"started":"@03","inputs":{"message":"Who am I?"},"outputs":{"result":"Alex"},"saw":[{"saw_of":"t2"},{"call":"t2","steps":true}],"conversation":{"id":"alex","turn":"t3","parent":"t2"}}
`

const rated = `,"version":"v1","rating":"right","rated_by":"ana","origin":"review","sample":null,"disputed":false}`

var contextCases = []ratedCase{{
	rule: "a turn's row has the turns it was shown; once one row has, every row says what it was shown",
	log: conversationLog + `
		{CALL,"id":"t9",TEAM,"started":"@09","inputs":{"message":"alone"},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"t1","at":"@30"}
		{RIGHT,"id":"r3","call":"t3","at":"@30"}
		{RIGHT,"id":"r9","call":"t9","at":"@30"}`,
	rows: `{"message":"Hi, I'm Alex.","result":"Hello!","earlier":[],"conversation":"alex","call":"t1"` + rated + `
		{"message":"Who am I?","result":"Alex","earlier":[{"inputs":{"message":"Hi, I'm Alex."},"outputs":{"result":"Hello!"},"steps":[{"kind":"model","outputs":{"result":"Hello!"}}],"signature":"s1"},{"inputs":{"message":"What is 2+2?"},"outputs":{"result":"4"},"steps":[{"kind":"model","outputs":{"result":"4"}}],"signature":"s1"}],"conversation":"alex","call":"t3"` + rated + `
		{"message":"alone","result":"x","earlier":[],"conversation":null,"call":"t9"` + rated,
}, {
	rule: "shown without steps, a turn is its values; fields left out when it was shown are left out again",
	log: `
		{CALL,"id":"t1",TEAM,"started":"@01","inputs":{"photo":"…","message":"Look."},"outputs":{"reasoning":"hm","result":"A cat."}}
		{CALL,"id":"t2",TEAM,"started":"@02","inputs":{"message":"Sure?"},"outputs":{"result":"Yes."},"saw":[{"call":"t1","without":["photo","reasoning"],"slot":"turns"},{"call":"t1","steps":false}]}
		{RIGHT,"id":"r2","call":"t2","at":"@30"}`,
	rows: `{"message":"Sure?","result":"Yes.","earlier":[{"inputs":{"message":"Look."},"outputs":{"result":"A cat."}},{"inputs":{"photo":"…","message":"Look."},"outputs":{"reasoning":"hm","result":"A cat."}}],"conversation":null,"call":"t2"` + rated,
}, {
	rule: "a conversation is context, even one that showed nothing; so are sections",
	log: `
		{CALL,"id":"t1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"conversation":{"id":"k","turn":"t1","parent":null}}
		{CALL,"id":"t2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"},"sections":["Earlier: a lot.","And more."]}
		{RIGHT,"id":"r1","call":"t1","at":"@30"}
		{RIGHT,"id":"r2","call":"t2","at":"@30"}`,
	rows: `{"m":1,"result":"x","earlier":[],"conversation":"k","call":"t1"` + rated + `
		{"m":2,"result":"x","earlier":[],"conversation":null,"sections":["Earlier: a lot.","And more."],"call":"t2"` + rated,
}, {
	rule: "data keeps its names here too",
	log: `
		{CALL,"id":"t1",TEAM,"started":"@01","inputs":{"earlier":1,"sections":2,"_earlier":3},"outputs":{"result":"x"},"sections":["S"]}
		{RIGHT,"id":"r1","call":"t1","at":"@30"}`,
	rows: `{"earlier":1,"sections":2,"_earlier":3,"result":"x","__earlier":[],"conversation":null,"_sections":["S"],"call":"t1"` + rated,
}, {
	rule: "a record of format 1 does not say what it saw: outside a conversation that is nothing, in one it is not known",
	log: `
		{"functai_call":1,"id":"a",TEAM,"started":"@01","content":true,"inputs":{"m":1},"outputs":{"result":"x"}}
		{"functai_call":2,"id":"b",TEAM,"started":"@02","content":true,"inputs":{"m":2},"outputs":{"result":"x"},"conversation":{"id":"k","turn":"b","parent":null}}
		{CALL,"id":"c",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"},"sections":["S"]}
		{RIGHT,"id":"r1","call":"a","at":"@30"}
		{RIGHT,"id":"r2","call":"b","at":"@30"}
		{RIGHT,"id":"r3","call":"c","at":"@30"}`,
	rows: `{"m":1,"result":"x","earlier":[],"conversation":null,"call":"a"` + rated + `
		{"m":3,"result":"x","earlier":[],"conversation":null,"sections":["S"],"call":"c"` + rated,
	left: "no_context 1",
	why:  "not-recorded 1",
}, {
	rule: "rows that were shown nothing stay as they are, whatever was left out for its context",
	log: `
		{"functai_call":1,"id":"a",TEAM,"started":"@01","content":true,"inputs":{"m":1},"outputs":{"result":"x"}}
		{RIGHT,"id":"r1","call":"a","at":"@30"}`,
	rows: `{"m":1,"result":"x","call":"a"` + rated,
}, {
	rule: "missing: a call shown; a call whose saw is referred to; one that is there and does not say what it saw",
	log: `
		{CALL,"id":"a",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"call":"gone"}]}
		{CALL,"id":"b",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"},"saw":[{"saw_of":"gone"}]}
		{CALL,"id":"c",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"},"saw":[{"saw_of":"b"}]}
		{CALL,"id":"d",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"result":"x"},"saw":[{"saw_of":"old"}]}
		{"functai_call":1,"id":"old",TEAM,"started":"@00","content":true,"inputs":{"m":0},"outputs":{"result":"x"}}
		{CALL,"id":"e",TEAM,"started":"@05","inputs":{"m":5},"outputs":{"result":"x"},"saw":[{"call":"old"}]}
		` + rightOf("a b c d e"),
	rows: `{"m":5,"result":"x","earlier":[{"inputs":{"m":0},"outputs":{"result":"x"}}],"conversation":null,"call":"e"` + rated,
	left: "no_context 4",
	why:  "missing-call 4",
}, {
	rule: "unknown: a key, an entry of another kind, saw_of that is not first or not alone, what is no entry, what is no list",
	log: `
		{CALL,"id":"a",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"call":"z","deeper":true}]}
		{CALL,"id":"b",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"},"saw":[{"call":"z"},{"context":"changed"}]}
		{CALL,"id":"c",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"},"saw":[{"call":"z"},{"saw_of":"z"}]}
		{CALL,"id":"d",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"result":"x"},"saw":[{"saw_of":"z","steps":true}]}
		{CALL,"id":"e",TEAM,"started":"@05","inputs":{"m":5},"outputs":{"result":"x"},"saw":["z"]}
		{CALL,"id":"f",TEAM,"started":"@06","inputs":{"m":6},"outputs":{"result":"x"},"saw":{"call":"z"}}
		{CALL,"id":"g",TEAM,"started":"@07","inputs":{"m":7},"outputs":{"result":"x"},"saw":[{}]}
		{CALL,"id":"h",TEAM,"started":"@08","inputs":{"m":8},"outputs":{"result":"x"},"saw":[{"saw_of":"a"},{"call":"z"}]}
		{CALL,"id":"i",TEAM,"started":"@09","inputs":{"m":9},"outputs":{"result":"x"},"saw":[{"call":"z","steps":"yes"}]}
		{CALL,"id":"j",TEAM,"started":"@10","inputs":{"m":10},"outputs":{"result":"x"},"sections":["a",2]}
		{CALL,"id":"z",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"result":"x"}}
		` + rightOf("a b c d e f g h i j"),
	left: "no_context 10",
	why:  "unknown-key 10",
}, {
	rule: "saw_of that comes back to a call already followed is known of none of them",
	log: `
		{CALL,"id":"a",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"b"}]}
		{CALL,"id":"b",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"},"saw":[{"saw_of":"c"},{"call":"z"}]}
		{CALL,"id":"c",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"},"saw":[{"saw_of":"b"}]}
		{CALL,"id":"d",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"result":"x"},"saw":[{"saw_of":"d"}]}
		{CALL,"id":"e",TEAM,"started":"@05","inputs":{"m":5},"outputs":{"result":"x"},"saw":[{"call":"e"}]}
		` + rightOf("a b c d e"),
	rows: `{"m":5,"result":"x","earlier":[{"inputs":{"m":5},"outputs":{"result":"x"}}],"conversation":null,"call":"e"` + rated,
	left: "no_context 4",
	why:  "saw-cycle 4",
}, {
	rule: "however long the way is: to a call that is not here, to a cycle, to the end",
	log: `
		{CALL,"id":"a1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"a2"}]}
		{CALL,"id":"a2",TEAM,"started":"@02","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"a3"}]}
		{CALL,"id":"a3",TEAM,"started":"@03","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"a4"}]}
		{CALL,"id":"a4",TEAM,"started":"@04","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"gone"},{"call":"a3"}]}
		{CALL,"id":"b1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"b2"}]}
		{CALL,"id":"b2",TEAM,"started":"@02","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"b3"}]}
		{CALL,"id":"b3",TEAM,"started":"@03","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"b4"}]}
		{CALL,"id":"b4",TEAM,"started":"@04","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"b3"}]}
		{CALL,"id":"c1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"c2"}]}
		{CALL,"id":"c2",TEAM,"started":"@02","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"c3"}]}
		{CALL,"id":"c3",TEAM,"started":"@03","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"saw_of":"c4"}]}
		{CALL,"id":"c4",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"result":"y"},"saw":[{"call":"c4"}]}
		` + rightOf("a1 b1 c1"),
	rows: `{"m":1,"result":"x","earlier":[{"inputs":{"m":4},"outputs":{"result":"y"}}],"conversation":null,"call":"c1"` + rated,
	left: "no_context 2",
	why:  "missing-call 1, saw-cycle 1",
}, {
	rule: "no call can have been shown with its steps and without its tool calls, whether or not it is here",
	log: `
		{CALL,"id":"a",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"call":"z","steps":true,"without":["calls"]}]}
		{CALL,"id":"b",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"},"saw":[{"call":"gone","steps":true,"without":["calls"]}]}
		{CALL,"id":"c",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"},"saw":[{"call":"z","without":["calls"]}]}
		{CALL,"id":"d",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"result":"x"},"saw":[{"call":"z","steps":true,"without":["asked"]}]}
		{CALL,"id":"z",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"calls":[],"asked":[],"result":"x"},"steps":[{"kind":"model","outputs":{"asked":[]},"calls_field":"asked"}]}
		` + rightOf("a b c d"),
	rows: `{"m":3,"result":"x","earlier":[{"inputs":{"m":0},"outputs":{"asked":[],"result":"x"}}],"conversation":null,"call":"c"` + rated,
	left: "no_context 3",
	why:  "turn-invalid 3",
}, {
	rule: "not kept, by values: cut to fit; described; content not whole in format 1, without omitted, omitted; unless it was left out",
	log: `
		{CALL,"id":"z1",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"result":"x"},"truncated":true}
		{CALL,"id":"z2",TEAM,"started":"@00","inputs":{"m":0,"f":{"$type":"F","$repr":"f"}},"outputs":{"result":"x"},"described":{"inputs":["f"],"outputs":[]}}
		{"functai_call":1,"id":"z3",TEAM,"started":"@00","content":false,"outputs":null}
		{"functai_call":2,"id":"z4",TEAM,"started":"@00","content":false,"inputs":{"m":0},"outputs":{"result":"x"},"saw":[]}
		{"functai_call":2,"id":"z5",TEAM,"started":"@00","content":false,"omitted":{"inputs":["p"],"outputs":["q"]},"inputs":{"m":0},"outputs":{"result":"x"},"saw":[]}
		{CALL,"id":"a1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"call":"z1"}]}
		{CALL,"id":"a2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"},"saw":[{"call":"z2"}]}
		{CALL,"id":"a3",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"},"saw":[{"call":"z3"}]}
		{CALL,"id":"a4",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"result":"x"},"saw":[{"call":"z4"}]}
		{CALL,"id":"a5",TEAM,"started":"@05","inputs":{"m":5},"outputs":{"result":"x"},"saw":[{"call":"z5","without":["p"]}]}
		{CALL,"id":"b2",TEAM,"started":"@12","inputs":{"m":12},"outputs":{"result":"x"},"saw":[{"call":"z2","without":["f"]}]}
		{CALL,"id":"b5",TEAM,"started":"@15","inputs":{"m":15},"outputs":{"result":"x"},"saw":[{"call":"z5","without":["p","q"]}]}
		` + rightOf("a1 a2 a3 a4 a5 b2 b5"),
	rows: `{"m":12,"result":"x","earlier":[{"inputs":{"m":0},"outputs":{"result":"x"}}],"conversation":null,"call":"b2"` + rated + `
		{"m":15,"result":"x","earlier":[{"inputs":{"m":0},"outputs":{"result":"x"}}],"conversation":null,"call":"b5"` + rated,
	left: "no_context 5",
	why:  "not-kept 5",
}, {
	rule: "not kept, by steps: content not whole, an exchange without its request's hash, a reply that is gone, no steps",
	log: `
		{"functai_call":2,"id":"z1",TEAM,"started":"@00","content":false,"omitted":{"inputs":[],"outputs":["q"]},"inputs":{"m":0},"outputs":{"result":"x"},"saw":[],"steps":[]}
		{CALL,"id":"z2",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"result":"x"},"steps":[],"exchanges":[{"finish":"stop","response":{}}]}
		{CALL,"id":"z3",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"result":"x"},"steps":[],"exchanges":[{"request_hash":"h","finish":"stop"}]}
		{CALL,"id":"z4",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"result":"x"},"exchanges":[{"request_hash":"h","finish":"stop","response":{}}]}
		{CALL,"id":"z5",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"result":"x"},"steps":[],"exchanges":[{"request_hash":"h","error":{"type":"E"}},{"request_hash":"h","finish":"stop","response":{}}]}
		{CALL,"id":"a1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"call":"z1","steps":true,"without":["q"]}]}
		{CALL,"id":"a2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"},"saw":[{"call":"z2","steps":true}]}
		{CALL,"id":"a3",TEAM,"started":"@03","inputs":{"m":3},"outputs":{"result":"x"},"saw":[{"call":"z3","steps":true}]}
		{CALL,"id":"a4",TEAM,"started":"@04","inputs":{"m":4},"outputs":{"result":"x"},"saw":[{"call":"z4","steps":true}]}
		{CALL,"id":"a5",TEAM,"started":"@05","inputs":{"m":5},"outputs":{"result":"x"},"saw":[{"call":"z5","steps":true}]}
		{CALL,"id":"b4",TEAM,"started":"@14","inputs":{"m":14},"outputs":{"result":"x"},"saw":[{"call":"z4"}]}
		` + rightOf("a1 a2 a3 a4 a5 b4"),
	rows: `{"m":5,"result":"x","earlier":[{"inputs":{"m":0},"outputs":{"result":"x"},"steps":[],"signature":"s1"}],"conversation":null,"call":"a5"` + rated + `
		{"m":14,"result":"x","earlier":[{"inputs":{"m":0},"outputs":{"result":"x"}}],"conversation":null,"call":"b4"` + rated,
	left: "no_context 4",
	why:  "not-kept 4",
}, {
	rule: "not kept: a number that no float64 can hold, in a value or in a step; unless it was left out",
	log: `
		{CALL,"id":"z1",TEAM,"started":"@00","inputs":{"m":0,"n":1e999},"outputs":{"result":"x"}}
		{CALL,"id":"z2",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"result":"x"},"steps":[{"kind":"model","outputs":{"result":1e999}}]}
		{CALL,"id":"a1",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"call":"z1"}]}
		{CALL,"id":"a2",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"},"saw":[{"call":"z2","steps":true}]}
		{CALL,"id":"b1",TEAM,"started":"@11","inputs":{"m":11},"outputs":{"result":"x"},"saw":[{"call":"z1","without":["n"]}]}
		` + rightOf("a1 a2 b1"),
	rows: `{"m":11,"result":"x","earlier":[{"inputs":{"m":0},"outputs":{"result":"x"}}],"conversation":null,"call":"b1"` + rated,
	left: "no_context 2",
	why:  "not-kept 2",
}, {
	rule: "a turn after one whose request a plugin replaced cannot show it with its steps; its values it can",
	log: `
		{CALL,"id":"z",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"result":"x"},"steps":[],"replayable":false,"exchanges":[{"finish":"stop","request":{},"response":{}}]}
		{CALL,"id":"a",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"call":"z","steps":true}]}
		{CALL,"id":"b",TEAM,"started":"@02","inputs":{"m":2},"outputs":{"result":"x"},"saw":[{"call":"z"}]}
		` + rightOf("z a b"),
	rows: `{"m":0,"result":"x","earlier":[],"conversation":null,"call":"z"` + rated + `
		{"m":2,"result":"x","earlier":[{"inputs":{"m":0},"outputs":{"result":"x"}}],"conversation":null,"call":"b"` + rated,
	left: "no_context 1",
	why:  "not-kept 1",
}, {
	rule: "branches of a conversation have their own turns",
	log: conversationLog + `
		{CALL,"id":"u3",TEAM,"started":"@04","inputs":{"message":"Other."},"outputs":{"result":"x"},"saw":[{"saw_of":"t2"},{"call":"t2"}]}
		{CALL,"id":"u4",TEAM,"started":"@05","inputs":{"message":"More."},"outputs":{"result":"y"},"saw":[{"saw_of":"u3"},{"call":"u3"}]}
		{CALL,"id":"t4",TEAM,"started":"@06","inputs":{"message":"Bye."},"outputs":{"result":"z"},"saw":[{"saw_of":"t3"},{"call":"t3","without":["message"]}]}
		` + rightOf("t4 u4"),
	rows: `{"message":"More.","result":"y","earlier":[` + turn1 + `,{"inputs":{"message":"What is 2+2?"},"outputs":{"result":"4"}},{"inputs":{"message":"Other."},"outputs":{"result":"x"}}],"conversation":null,"call":"u4"` + rated + `
		{"message":"Bye.","result":"z","earlier":[` + turn1 + `,` + turn2 + `,{"inputs":{},"outputs":{"result":"Alex"}}],"conversation":null,"call":"t4"` + rated,
}, {
	rule: "a call of an evaluation saw what the rated call saw, and can be rated and asked again itself",
	log: conversationLog + `
		{CALL,"id":"e",TEAM,"started":"@20","inputs":{"message":"Who am I?"},"outputs":{"result":"Al"},"saw":[{"saw_of":"t3"}],"caller":{"evaluation":"run"}}
		` + rightOf("e"),
	rows: `{"message":"Who am I?","result":"Al","earlier":[` + turn1 + `,` + turn2 + `],"conversation":null,"call":"e"` + rated,
}, {
	rule: "a module's row has what calls inside it were shown, in the order they started, at any depth",
	log:  moduleLog + rightOf("m1"),
	q:    Query{Program: "desk"},
	rows: `{"m":1,"result":"x","earlier":[],"conversation":null,"helpers":[{"program":"look","call":"h3","earlier":[],"sections":["S"]},{"program":"look","call":"h2","earlier":[{"inputs":{"m":0},"outputs":{"result":"x"}}]}],"call":"m1"` + rated,
}, {
	rule: "helpers are a module's alone; a module none of whose calls saw anything has none",
	log: moduleLog + `
		{CALL,"id":"m2","program":{"name":"desk","kind":"module","version":"v1","answer":"result"},"root":"m2","started":"@10","inputs":{"m":2},"outputs":{"result":"x"}}
		{CALL,"id":"m3","program":{"name":"desk","kind":"ai","version":"v1","answer":"result"},"root":"m3","started":"@11","inputs":{"m":3},"outputs":{"result":"x"}}
		{CALL,"id":"h9",TEAM,"root":"m3","parent":"m3","started":"@12","inputs":{"m":9},"outputs":{"result":"x"},"saw":[{"call":"z"}]}
		` + rightOf("m1 m2 m3"),
	q: Query{Program: "desk"},
	rows: `{"m":1,"result":"x","earlier":[],"conversation":null,"helpers":[{"program":"look","call":"h3","earlier":[],"sections":["S"]},{"program":"look","call":"h2","earlier":[{"inputs":{"m":0},"outputs":{"result":"x"}}]}],"call":"m1"` + rated + `
		{"m":2,"result":"x","earlier":[],"conversation":null,"helpers":[],"call":"m2"` + rated + `
		{"m":3,"result":"x","earlier":[],"conversation":null,"call":"m3"` + rated,
}, {
	rule: "modules none of whose calls saw anything are rows without context",
	log: `
		{CALL,"id":"m1","program":{"name":"desk","kind":"module","version":"v1","answer":"result"},"root":"m1","started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
		{CALL,"id":"h1",TEAM,"root":"m1","parent":"m1","started":"@02","inputs":{"m":1},"outputs":{"result":"x"}}
		` + rightOf("m1"),
	q:    Query{Program: "desk"},
	rows: `{"m":1,"result":"x","call":"m1"` + rated,
}, {
	rule: "a helper whose context cannot be shown again leaves the module's call out",
	log: moduleLog + `
		{CALL,"id":"h4",TEAM,"root":"top","parent":"m1","started":"@09","inputs":{"m":4},"outputs":{"result":"x"},"saw":[{"call":"gone"}]}
		` + rightOf("m1"),
	q:    Query{Program: "desk"},
	left: "no_context 1",
	why:  "missing-call 1",
}}

// moduleLog is a module's call and calls with the same root: look (h1) saw
// nothing; look (h2), inside a module inside, saw z; look (h3) got a section;
// h5 has the same root and another parent; h6 names a parent that is not here.
const moduleLog = `
	{CALL,"id":"z",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"result":"x"}}
	{CALL,"id":"m1","program":{"name":"desk","kind":"module","version":"v1","answer":"result"},"root":"top","parent":"top","started":"@01","inputs":{"m":1},"outputs":{"result":"x"}}
	{CALL,"id":"h1","program":{"name":"look","kind":"ai","answer":"result"},"root":"top","parent":"m1","started":"@02","inputs":{"m":1},"outputs":{"result":"x"}}
	{CALL,"id":"h2","program":{"name":"look","kind":"ai","answer":"result"},"root":"top","parent":"i1","started":"@05","inputs":{"m":2},"outputs":{"result":"x"},"saw":[{"call":"z"}]}
	{CALL,"id":"i1","program":{"name":"inner","kind":"module","answer":"result"},"root":"top","parent":"m1","started":"@03","inputs":{"m":2},"outputs":{"result":"x"}}
	{CALL,"id":"h3","program":{"name":"look","kind":"ai","answer":"result"},"root":"top","parent":"m1","started":"@04","inputs":{"m":3},"outputs":{"result":"x"},"sections":["S"]}
	{CALL,"id":"h5","program":{"name":"look","kind":"ai","answer":"result"},"root":"top","parent":"top","started":"@06","inputs":{"m":5},"outputs":{"result":"x"},"saw":[{"call":"gone"}]}
	{CALL,"id":"h6","program":{"name":"look","kind":"ai","answer":"result"},"root":"top","parent":"nowhere","started":"@07","inputs":{"m":6},"outputs":{"result":"x"},"saw":[{"call":"gone"}]}
	{CALL,"id":"top","program":{"name":"app","kind":"module","answer":"result"},"root":"top","started":"@00","inputs":{},"outputs":{"result":"x"}}
`

const (
	turn1 = `{"inputs":{"message":"Hi, I'm Alex."},"outputs":{"result":"Hello!"},"steps":[{"kind":"model","outputs":{"result":"Hello!"}}],"signature":"s1"}`
	turn2 = `{"inputs":{"message":"What is 2+2?"},"outputs":{"result":"4"},"steps":[{"kind":"model","outputs":{"result":"4"}}],"signature":"s1"}`
)

func rightOf(ids string) string {
	var b strings.Builder
	for _, id := range strings.Fields(ids) {
		fmt.Fprintf(&b, `{RIGHT,"id":"r-%s","call":"%s","at":"@30"}`+"\n", id, id)
	}
	return b.String()
}

func TestRatedContexts(t *testing.T) {
	for _, c := range contextCases {
		t.Run(c.rule, func(t *testing.T) { c.check(t, sourceOf(t, c.log)) })
	}
}

func TestHelpersPlaces(t *testing.T) {
	r, err := Rows(t.Context(), sourceOf(t, moduleLog+rightOf("m1")), Query{Program: "desk"})
	if err != nil {
		t.Fatal(err)
	}
	row, err := r.At(0)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, h := range row.Context.Helpers {
		got = append(got, fmt.Sprintf("%s %s %d %d %q", h.Program, h.Call, h.Nth, len(h.Earlier), h.Sections))
	}
	// h1 was the first look, and saw nothing.
	want := `look h3 1 0 ["S"]; look h2 2 1 []`
	if strings.Join(got, "; ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A field that was left out of a turn shown with its steps is in none of them,
// nor in a message that was recorded with it.
func TestStepsWithoutAField(t *testing.T) {
	log := `
		{CALL,"id":"z",TEAM,"started":"@00","inputs":{"m":0},"outputs":{"reasoning":"SECRET","result":"x"},"steps":[{"kind":"model","outputs":{"calls":[1]},"message":{"text":"call"}},{"kind":"tool","id":"1","name":"t","output":"reasoning"},{"kind":"model","outputs":{"reasoning":"SECRET","result":"x"},"message":{"text":"SECRET x"}}]}
		{CALL,"id":"a",TEAM,"started":"@01","inputs":{"m":1},"outputs":{"result":"x"},"saw":[{"call":"z","steps":true,"without":["reasoning"]}]}
		` + rightOf("a")
	r, err := Rows(t.Context(), sourceOf(t, log), Query{Program: "team"})
	if err != nil || r.Len() != 1 {
		t.Fatalf("%v, left %+v", err, r.Left)
	}
	row, _ := r.At(0)
	if got := contextText(row.Context); strings.Contains(got, "SECRET") {
		t.Errorf("the field is shown: %s", got)
	}
	var steps []string
	for _, s := range row.Context.Earlier[0].Steps {
		steps = append(steps, s.JSON())
	}
	want := `{"kind":"model","outputs":{"calls":[1]},"message":{"text":"call"}} {"kind":"tool","id":"1","name":"t","output":"reasoning"} {"kind":"model","outputs":{"result":"x"}}`
	if got := strings.Join(steps, " "); got != want {
		t.Errorf("steps\n got %s\nwant %s", got, want)
	}
}

// contextText is everything a program can see of a context.
func contextText(c datasets.Context) string {
	var b strings.Builder
	turns := func(turns []datasets.Turn) {
		for _, t := range turns {
			fmt.Fprint(&b, t.Inputs.Object().JSON(), t.Outputs.Object().JSON(), t.Signature)
			for _, s := range t.Steps {
				fmt.Fprint(&b, s.JSON())
			}
		}
	}
	turns(c.Earlier)
	fmt.Fprint(&b, c.Sections, c.Conversation)
	for _, h := range c.Helpers {
		turns(h.Earlier)
		fmt.Fprint(&b, h.Program, h.Sections)
	}
	return b.String()
}

// What people said is right is nowhere in what a program is given.
func TestLabelsAreNotInContext(t *testing.T) {
	log := strings.ReplaceAll(conversationLog+moduleLog, `"name":"look","kind":"ai"`, `"name":"team","kind":"ai","module":"support"`) + `
		{WRONG,"id":"r1","call":"t2","at":"@30","answer":"LABEL-1","outputs":{"p":"LABEL-2"}}
		{WRONG,"id":"r2","call":"t3","at":"@30","answer":"LABEL-3","note":"LABEL-4"}
		{WRONG,"id":"r3","call":"m1","at":"@30","answer":"LABEL-5"}
		{WRONG,"id":"r4","call":"z","at":"@30","answer":"LABEL-6"}`
	for _, program := range []string{"team", "desk"} {
		r, err := Rows(t.Context(), sourceOf(t, log), Query{Program: program})
		if err != nil || r.Len() == 0 {
			t.Fatalf("%s: %v %+v", program, err, r.Left)
		}
		for row, err := range datasets.All(r) {
			if err != nil {
				t.Fatal(err)
			}
			if given := row.Inputs.Object().JSON() + contextText(row.Context); strings.Contains(given, "LABEL") {
				t.Errorf("%s is given %s", row.ID, given)
			}
			if !strings.Contains(row.Labels.Object().JSON(), "LABEL") {
				t.Errorf("%s has labels %s", row.ID, row.Labels.Object().JSON())
			}
		}
	}
}

// longConversation is a conversation of n turns, all of them rated.
func longConversation(n int) Source {
	calls := make([]*Record, n)
	ratings := make([]*Rating, n)
	for i := range n {
		id := fmt.Sprintf("t%06d", i)
		yes := true
		c := &Record{
			Format: 2, ID: id, Root: id, Content: &yes,
			Program:      Program{Name: "team", Module: "support", Kind: "ai", Answer: "result"},
			Inputs:       datasets.RawValue(fmt.Sprintf(`{"m":%d}`, i)),
			Outputs:      datasets.RawValue(`{"result":"x"}`),
			Saw:          []Saw{},
			Conversation: &Conversation{ID: "k", Turn: id},
		}
		if i > 0 {
			before := fmt.Sprintf("t%06d", i-1)
			c.Saw = []Saw{{SawOf: before}, {Call: before}}
		}
		calls[i] = c
		ratings[i] = &Rating{Format: 1, ID: "r" + id, Call: id, By: "ana", Verdict: "right"}
	}
	return InMemory(calls, ratings)
}

// Ten times the turns of one conversation take about ten times the memory and
// work, although every turn was shown all turns before it.
func TestLongConversationIsLinear(t *testing.T) {
	spent := func(n int) uint64 {
		src := longConversation(n)
		runtime.GC()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		r, err := Rows(t.Context(), src, Query{Program: "team"})
		runtime.ReadMemStats(&after)
		if err != nil || r.Len() != n {
			t.Fatalf("%d rows of %d: %v", r.Len(), n, err)
		}
		last, _ := r.At(n - 1)
		if got := len(last.Context.Earlier); got != n-1 {
			t.Fatalf("the last turn was shown %d turns, want %d", got, n-1)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	spent(100)
	small, large := spent(1000), spent(10000)
	if large > 12*small {
		t.Errorf("1,000 turns take %d bytes, 10,000 take %d: more than ten times as many", small, large)
	}
}

// counting counts what is read through a Source.
type counting struct {
	Source
	calls  int
	passes int
}

func (c *counting) Calls(w Want) iter.Seq2[*Record, error] {
	c.passes++
	return func(yield func(*Record, error) bool) {
		for r, err := range c.Source.Calls(w) {
			c.calls++
			if !yield(r, err) {
				return
			}
		}
	}
}

// Only the calls that rows need are read, however many others there are, and
// however long the conversations are.
func TestOnlyNeededCallsAreRead(t *testing.T) {
	read := func(unrated int) (calls, passes int) {
		var b strings.Builder
		b.WriteString(conversationLog)
		b.WriteString(moduleLog)
		for i := range unrated {
			fmt.Fprintf(&b, `{CALL,"id":"n%d",TEAM,"started":"@10","inputs":{"m":%d},"outputs":{"result":"x"}}`+"\n", i, i)
		}
		b.WriteString(rightOf("t3 z m1"))
		src := &counting{Source: sourceOf(t, b.String())}
		for _, program := range []string{"team", "desk"} {
			r, err := Rows(t.Context(), src, Query{Program: program})
			if err != nil || r.Len() == 0 {
				t.Fatalf("%v, %+v", err, r)
			}
		}
		return src.calls, src.passes
	}
	calls, passes := read(0)
	if more, again := read(5000); more != calls || again != passes {
		t.Errorf("reads %d calls in %d passes; with 5,000 unrated calls %d in %d", calls, passes, more, again)
	}
	long := &counting{Source: longConversation(3000)}
	all := *long.Source.(*memory)
	all.ratings = all.ratings[len(all.ratings)-1:]
	long.Source = &all
	if _, err := Rows(t.Context(), long, Query{Program: "team"}); err != nil {
		t.Fatal(err)
	}
	if long.passes > 3 {
		t.Errorf("a conversation of 3,000 turns is read in %d passes", long.passes)
	}
}
