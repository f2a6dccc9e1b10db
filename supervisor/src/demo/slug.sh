# slug TITLE: a title as part of a web address, such as "Hello, World" -> hello-world
slug() {
    printf '%s' "$1" | tr 'A-Z' 'a-z' | tr -c 'a-z0-9' '-'
}
