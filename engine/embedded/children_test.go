package embedded

// children are the bodies of processes that tests start.
var children = map[string]func(args []string){}
