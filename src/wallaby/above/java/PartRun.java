package wallaby;

import java.lang.ref.WeakReference;
import org.apache.spark.SparkContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.Column;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.classic.Dataset;
import org.apache.spark.sql.classic.SparkSession;
import org.apache.spark.sql.execution.QueryExecution$;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.functions;

/** A sub-plan that runs in the TaskManagers once, however many nodes stand for it and however often they execute. */
public class PartRun {
    private static final String KEPT_RESULT = "WALLABY_KEPT_RESULT";
    static final String RAISED = "wallaby.errors.queries.KeptResultError: ";

    final KeptPlans plans;
    /** A copy: nothing that is said of the nodes of the query around it is said of these. */
    public final LogicalPlan plan;
    private final SparkSession session = (SparkSession) SparkSession.active();
    final String id;
    final String text;
    /** Are its rows kept until they are released by name? */
    public boolean stays = false;
    volatile long rows = -1;
    volatile long bytes = -1;
    private WeakReference rdd = new WeakReference(null);
    /** If rows are kept until they are released, what is executed later reads them too. */
    private PartRdd held = null;

    public PartRun(KeptPlans plans, LogicalPlan plan, String id, String text) {
        this.plans = plans;
        this.plan = (LogicalPlan) plan.clone();
        this.id = id;
        this.text = text;
        plans.rdds.watch(this, id);
    }

    public String id() {
        return id;
    }

    /** The sub-plan as a query of its own, which is never offered again. */
    public Object query() {
        return Dataset.ofRows(session, (LogicalPlan) plan.clone());
    }

    /**
     * Spark's own physical plan. It is made from the optimized plan as it is: to optimize it again would take time, and
     * Spark fails at some plans that it has optimized itself. It is not adapted while it runs, because the thread that
     * executes it may belong to the pool that adapted queries need.
     */
    public SparkPlan onSpark(int partitions) {
        SparkSession own = session.cloneSession();
        own.conf().set("spark.sql.adaptive.enabled", "false");
        if (partitions > 0) {
            own.conf().set("spark.sql.shuffle.partitions", String.valueOf(partitions));
        }
        SparkContext context = plans.rdds.context();
        String before = context.getLocalProperty(KeptPlans.BYPASS);
        SparkSession active = (SparkSession) SparkSession.active();
        context.setLocalProperty(KeptPlans.BYPASS, "true");
        SparkSession.setActiveSession(own);
        try {
            return QueryExecution$.MODULE$.prepareExecutedPlan(own, (LogicalPlan) plan.clone());
        } finally {
            SparkSession.setActiveSession(active);
            context.setLocalProperty(KeptPlans.BYPASS, before);
        }
    }

    /** The rows as an RDD. Nothing runs yet. */
    synchronized RDD execute(KeptPlans.Exec node) {
        require();
        PartRdd there = (PartRdd) rdd.get();
        if (there == null) {
            there = new PartRdd(plans.rdds.context(), new PartRows(this));
            rdd = new WeakReference(there);
        }
        if (stays) {
            held = there;
        }
        ((PartRows) there.source).add(node);
        return there;
    }

    /** Can the rows be read, or made? Those of a part can always be made, by Spark. */
    void require() {
        String why = gone();
        if (why != null) {
            throw new KeptPlans.WallabyException(KEPT_RESULT, why, null);
        }
    }

    /** Why the rows can neither be read nor made; null if they can. */
    String gone() {
        if (plans.rdds.isForgotten(id)) {
            return "The rows of this DataFrame were released by unpersist. Create the DataFrame again.";
        }
        return stays && plans.rdds.isClosed()
            ? "The engine that ran a part of this query is closed. Create the DataFrame again." : null;
    }

    /**
     * In the place of rows that are gone: partitions that raise an error when they are computed, in the words in which tasks
     * of Python raise it. What was made of the rows may be in Spark's cache; then nobody computes them.
     */
    RDD raising(String why, int partitions) {
        Column error = functions.raise_error(functions.lit("\n" + RAISED + why + "\n\n"));
        return session.range(0, partitions, 1, partitions).select(new Column[] {error}).queryExecution().executedPlan().execute();
    }
}
