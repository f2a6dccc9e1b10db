# Run with: sh test.sh
. ./slug.sh
failed=0

check() {
    got=$(slug "$1")
    if [ "$got" = "$2" ]; then
        echo "ok    \"$1\" -> $got"
    else
        echo "FAIL  \"$1\": expected $2, got $got"
        failed=1
    fi
}

check "Hello World" hello-world
check "Hello, World" hello-world
check "  What is new?  " what-is-new

exit $failed
