package wallaby;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import org.apache.spark.sql.catalyst.expressions.Cast;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.FormatNumber;
import org.apache.spark.sql.catalyst.expressions.InSet;
import org.apache.spark.sql.catalyst.expressions.Literal;
import org.apache.spark.sql.catalyst.expressions.NamedExpression;
import org.apache.spark.sql.catalyst.expressions.RoundBase;
import org.apache.spark.sql.catalyst.expressions.SessionWindow$;
import org.apache.spark.sql.catalyst.expressions.UnaryMathExpression;
import org.apache.spark.sql.catalyst.expressions.aggregate.HyperLogLogPlusPlus;
import org.apache.spark.sql.catalyst.expressions.aggregate.PivotFirst;
import org.apache.spark.sql.catalyst.expressions.objects.Invoke;
import org.apache.spark.sql.catalyst.util.HyperLogLogPlusPlusHelper$;
import org.apache.spark.sql.types.DataType;

/** What expressions say of themselves, besides their children and fields: PlanWriter.java lists it. */
public class PlanExpressions {
    /** How to get the evaluation mode, by class; NO_MODE if there is none. */
    private final Map modeMethods = Collections.synchronizedMap(new HashMap());

    private static final Method[] NO_MODE = new Method[0];

    void expression(StringBuilder out, Expression node) throws Exception {
        if (node.resolved()) {
            try {
                DataType type = node.dataType();
                boolean nullable = node.nullable();
                out.append(",\"t\":");
                Json.text(out, PlanValues.typeText(type));
                out.append(",\"n\":").append(nullable);
            } catch (Exception hasNoType) {
                // Such a node (the frame of a window, say) is written without one. Scala declares no exceptions.
                out.append(",\"n\":true");
            }
        }
        Object mode = mode(node);
        if (mode != null) {
            out.append(",\"m\":");
            Json.text(out, mode.toString());
        }
        if (node instanceof Cast || node instanceof FormatNumber || node instanceof RoundBase
                || node instanceof UnaryMathExpression || node instanceof Invoke) {
            // How Java writes a floating-point number, and how it computes some functions, depends on its version.
            out.append(",\"j\":").append(Runtime.version().feature());
        }
        if (node instanceof NamedExpression && node.resolved()) {
            NamedExpression named = (NamedExpression) node;
            out.append(",\"x\":[").append(named.exprId().id()).append(',');
            Json.text(out, named.name());
            out.append(']');
            if (named.metadata().contains(SessionWindow$.MODULE$.marker())) {
                out.append(",\"s\":true");
            }
        } else if (node instanceof Literal) {
            out.append(",\"v\":");
            PlanValues.literal(out, ((Literal) node).value(), node.dataType());
        } else if (node instanceof HyperLogLogPlusPlus) {
            out.append(",\"v\":");
            sketch(out, ((HyperLogLogPlusPlus) node).relativeSD());
        } else if (node instanceof InSet) {
            out.append(",\"v\":");
            PlanValues.values(out, ((InSet) node).hset().iterator());
        } else if (node instanceof PivotFirst) {
            out.append(",\"v\":");
            pivotValues(out, (PivotFirst) node);
        }
    }

    private static void pivotValues(StringBuilder out, PivotFirst pivot) {
        out.append('[');
        scala.collection.Iterator values = pivot.pivotColumnValues().iterator();
        while (values.hasNext()) {
            PlanValues.literal(out, values.next(), pivot.pivotColumn().dataType());
            out.append(values.hasNext() ? "," : "");
        }
        out.append(']');
    }

    /** The tables of a sketch of some precision, in the text of wallaby.functions.aggregates.sketches; null if there are none. */
    private static void sketch(StringBuilder out, double relativeSD) {
        int bits = (int) Math.ceil(2.0d * Math.log(1.106d / relativeSD) / Math.log(2.0d));
        double[][] estimates = HyperLogLogPlusPlusHelper$.MODULE$.RAW_ESTIMATE_DATA();
        double[][] biases = HyperLogLogPlusPlusHelper$.MODULE$.BIAS_DATA();
        double[] thresholds = HyperLogLogPlusPlusHelper$.MODULE$.THRESHOLDS();
        int row = bits - 4;
        if (row < 0 || row >= estimates.length || row >= thresholds.length) {
            out.append("null");
            return;
        }
        StringBuilder tables = new StringBuilder().append(bits).append(';').append(thresholds[row]).append(';');
        for (int i = 0; i < estimates[row].length; i++) {
            tables.append(i == 0 ? "" : ",").append(estimates[row][i]);
        }
        tables.append(';');
        for (int i = 0; i < biases[row].length; i++) {
            tables.append(i == 0 ? "" : ",").append(biases[row][i]);
        }
        Json.text(out, tables.toString());
    }

    /** The evaluation mode (ANSI, TRY, LEGACY) of an expression that has one, itself or in its context. */
    private Object mode(Expression node) throws Exception {
        Class type = node.getClass();
        Method[] path = (Method[]) modeMethods.get(type);
        if (path == null) {
            path = modePath(type);
            modeMethods.put(type, path);
        }
        Object found = path.length == 0 ? null : node;
        try {
            for (int i = 0; i < path.length; i++) {
                found = path[i].invoke(found, new Object[0]);
            }
        } catch (InvocationTargetException failed) {
            return "UNKNOWN";
        }
        return found;
    }

    private static Method[] modePath(Class type) {
        Method own = method(type, "evalMode");
        if (own != null) {
            return new Method[] {own};
        }
        Method context = method(type, "evalContext");
        Method inner = context == null ? null : method(context.getReturnType(), "evalMode");
        return inner == null ? NO_MODE : new Method[] {context, inner};
    }

    private static Method method(Class type, String name) {
        try {
            return type.getMethod(name, new Class[0]);
        } catch (NoSuchMethodException hasNone) {
            return null;
        }
    }
}
