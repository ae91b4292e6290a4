package wallaby;

import java.math.BigDecimal;
import java.util.Base64;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.json.StructsToJsonEvaluator;
import org.apache.spark.sql.catalyst.util.ArrayData;
import org.apache.spark.sql.catalyst.util.MapData;
import org.apache.spark.sql.types.ArrayType;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.Decimal;
import org.apache.spark.sql.types.MapType;
import org.apache.spark.sql.types.StructField;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.types.UTF8String;

/** Constants and types in the text of a plan. */
public class PlanValues {
    /** Rows in a plan travel with it to every worker. */
    static final int ROWS_MAX = 10000;

    /** A constant: for an array its values, for a struct those of its fields, for a map its keys and its values. */
    static void literal(StringBuilder out, Object value, DataType type) {
        if (value instanceof ArrayData && type instanceof ArrayType) {
            out.append("{\"array\":");
            items(out, (ArrayData) value, ((ArrayType) type).elementType());
            out.append('}');
        } else if (value instanceof MapData && type instanceof MapType) {
            out.append("{\"map\":[");
            items(out, ((MapData) value).keyArray(), ((MapType) type).keyType());
            out.append(',');
            items(out, ((MapData) value).valueArray(), ((MapType) type).valueType());
            out.append("]}");
        } else if (value instanceof InternalRow && type instanceof StructType) {
            StructField[] fields = ((StructType) type).fields();
            out.append("{\"struct\":[");
            for (int i = 0; i < fields.length; i++) {
                out.append(i == 0 ? "" : ",");
                DataType inner = fields[i].dataType();
                literal(out, ((InternalRow) value).isNullAt(i) ? null : ((InternalRow) value).get(i, inner), inner);
            }
            out.append("]}");
        } else {
            value(out, value);
        }
    }

    /** The values of an array; null if it is too long to travel with a plan. */
    private static void items(StringBuilder out, ArrayData array, DataType inner) {
        if (array.numElements() > ROWS_MAX) {
            out.append("null");
            return;
        }
        out.append('[');
        for (int i = 0; i < array.numElements(); i++) {
            out.append(i == 0 ? "" : ",");
            literal(out, array.isNullAt(i) ? null : array.get(i, inner), inner);
        }
        out.append(']');
    }

    /** Spark's text for a type, but the names of fields are quoted where they could be mistaken. */
    static String typeText(DataType type) {
        if (type instanceof ArrayType) {
            return "array<" + typeText(((ArrayType) type).elementType()) + ">";
        }
        if (type instanceof MapType) {
            return "map<" + typeText(((MapType) type).keyType()) + "," + typeText(((MapType) type).valueType()) + ">";
        }
        if (!(type instanceof StructType)) {
            return type.catalogString();
        }
        StringBuilder out = new StringBuilder("struct<");
        StructField[] fields = ((StructType) type).fields();
        for (int i = 0; i < fields.length; i++) {
            String name = fields[i].name();
            String quoted = name.matches("[a-zA-Z0-9_]+") ? name : "`" + name.replace("`", "``") + "`";
            out.append(i == 0 ? "" : ",").append(quoted).append(':').append(typeText(fields[i].dataType()));
        }
        return out.append('>').toString();
    }

    static void values(StringBuilder out, scala.collection.Iterator values) {
        out.append('[');
        while (values.hasNext()) {
            value(out, values.next());
            out.append(values.hasNext() ? "," : "");
        }
        out.append(']');
    }

    /** A value as Catalyst stores it: dates are days and timestamps microseconds since 1970. */
    static void value(StringBuilder out, Object value) {
        if (value == null || value instanceof Boolean || value instanceof Byte || value instanceof Short
                || value instanceof Integer || value instanceof Long) {
            out.append(value);
        } else if (value instanceof Float || value instanceof Double) {
            Json.tagged(out, "float", Double.toString(((Number) value).doubleValue()));
        } else if (value instanceof Decimal) {
            BigDecimal number = ((Decimal) value).toJavaBigDecimal();
            Json.tagged(out, "decimal", number.toPlainString());
        } else if (value instanceof UTF8String && UTF8String.fromString(value.toString()).equals(value)) {
            Json.tagged(out, "string", value.toString());
        } else if (value instanceof byte[]) {
            Json.tagged(out, "binary", Base64.getEncoder().encodeToString((byte[]) value));
        } else if (value instanceof StructsToJsonEvaluator && !((StructsToJsonEvaluator) value).options().isEmpty()) {
            Json.tagged(out, "opaque", "StructsToJsonWithOptions");
        } else {
            Json.tagged(out, "opaque", value.getClass().getName());
        }
    }
}
