package wallaby;

/** The texts of JSON in ASCII, as PlanWriter.java writes a plan. */
public class Json {
    static void tagged(StringBuilder out, String tag, String value) {
        out.append('{');
        text(out, tag);
        out.append(':');
        text(out, value);
        out.append('}');
    }

    static void text(StringBuilder out, String value) {
        out.append('"');
        for (int i = 0; i < value.length(); i++) {
            char c = value.charAt(i);
            if (c == '"' || c == '\\') {
                out.append('\\').append(c);
            } else if (c < 0x20 || c > 0x7e) {
                escape(out, c);
            } else {
                out.append(c);
            }
        }
        out.append('"');
    }

    static String ascii(String json) {
        StringBuilder out = new StringBuilder(json.length());
        for (int i = 0; i < json.length(); i++) {
            char c = json.charAt(i);
            if (c > 0x7e) {
                escape(out, c);
            } else {
                out.append(c);
            }
        }
        return out.toString();
    }

    private static void escape(StringBuilder out, char c) {
        out.append("\\u").append(Integer.toHexString(0x10000 | c).substring(1));
    }
}
