/** An API. */
public class Api {
    @Override
    public String name() { return "x"; }

    /** Counts. */
    public static int count(int a) { return a; }

    private void inner() {}
}
