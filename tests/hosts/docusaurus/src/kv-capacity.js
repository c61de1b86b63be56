import "kv-capacity";
